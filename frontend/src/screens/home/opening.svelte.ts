/** Opening a log: a file of the browser, a path on this machine, or a sample. */

import { go } from "../../lib/address.svelte";
import { asProblem, post, type Problem } from "../../lib/api";
import { bytes } from "../../lib/format";
import { refreshProjects } from "../../lib/projects.svelte";

export class Opening {
  /** What is being done, in words; null at rest. */
  words: string | null = $state(null);
  problem: Problem | null = $state.raw(null);

  /** Sends a file to the workbench, which keeps it on this machine, and opens it. */
  async file(file: File): Promise<boolean> {
    const name = encodeURIComponent(file.name);
    return this.#do(`Taking over ${file.name}, ${bytes(file.size)}`, async () => {
      const log = await post<{ id: string }>(`/v1/logs?name=${name}`, file);
      return post<{ id: string }>("/v1/projects", { log: log.id, name: file.name });
    });
  }

  /** Opens a file where it lies. */
  async path(path: string): Promise<boolean> {
    return this.#do(`Looking at ${path}`, () => post("/v1/projects", { path }));
  }

  /** Opens a log that comes with the workbench. */
  async sample(sample: string, name: string): Promise<boolean> {
    return this.#do(`Opening ${name}`, () => post("/v1/projects", { sample, name }));
  }

  /** Does it and goes to the log; returns whether that went well. */
  async #do(words: string, work: () => Promise<{ id: string }>): Promise<boolean> {
    this.words = words;
    this.problem = null;
    try {
      const project = await work();
      refreshProjects();
      go("log", {}, project.id);
      return true;
    } catch (error) {
      this.problem = asProblem(error);
      return false;
    } finally {
      this.words = null;
    }
  }
}
