/** Where a saved policy runs, and how to stop it. */

import { Answer } from "../../lib/answer.svelte";
import { asProblem, get, patch, path, type Problem } from "../../lib/api";
import { refreshProjects } from "../../lib/projects.svelte";
import type { Policy } from "../../lib/types";

export class Deployment {
  #policy = new Answer(async (place: string, signal: AbortSignal) => {
    const [name, version] = splitPlace(place);
    const policy = await get<Policy>(path`/v1/policies/${name}`, { signal });
    const isInUse = policy.settings.version === version && policy.settings.mode !== "paused";
    return isInUse ? policy : null;
  });
  problem: Problem | null = $state.raw(null);
  /** Name of the policy that was stopped here. */
  stopped: string | null = $state(null);

  /** The policy of the service that decides by this draft now; null where there is none. */
  running: Policy | null = $derived(this.#policy.value);

  /** Looks for it by the last place that the draft was added to, such as ``room@3``. */
  ask(places: string[]): void {
    this.stopped = null;
    const place = places.at(-1);
    if (place === undefined) {
      this.#policy.clear();
    } else {
      this.#policy.ask(place);
    }
  }

  /** Pauses it: the service decides nothing by it any more. */
  async stop(): Promise<void> {
    const policy = this.running;
    if (policy === null) {
      return;
    }
    this.problem = null;
    try {
      const where = path`/v1/policies/${policy.name}`;
      await patch(where, { mode: "paused" }, { ifMatch: `"${policy.etag}"` });
      this.stopped = policy.name;
      refreshProjects();
    } catch (error) {
      this.problem = asProblem(error);
    }
    this.#policy.again();
  }
}

function splitPlace(place: string): [name: string, version: number] {
  const cut = place.lastIndexOf("@");
  return [place.slice(0, cut), Number(place.slice(cut + 1))];
}
