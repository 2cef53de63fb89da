/**
 * Saved policies of a log: drafts of the service.
 *
 * `d` of the address names the one that is open. Its goal and method are compared with those shown,
 * so that the page can say that it was changed.
 */

import { address, update } from "../../lib/address.svelte";
import { announce } from "../../lib/announce.svelte";
import { Answer } from "../../lib/answer.svelte";
import { asProblem, get, patch, path, Problem, remove } from "../../lib/api";
import { freeName, saveDraft } from "../../lib/drafts";
import { plainGoal, sameGoal, withGoal } from "../../lib/goal";
import { methodKey, withMethod } from "../../lib/methods";
import { refreshProjects } from "../../lib/projects.svelte";
import type { Draft, DraftSummary, Project } from "../../lib/types";
import type { PolicyModel } from "./model.svelte";

type SavedPolicy = Pick<Draft, "goal" | "method">;

export class Saving {
  #project = new Answer((id: string, signal) => get<Project>(path`/v1/projects/${id}`, { signal }));
  #model: PolicyModel;

  /** Saved policies, the newest first; null until they are known. */
  drafts: DraftSummary[] | null = $derived.by(() => {
    const all = this.#project.value?.drafts ?? null;
    return all === null
      ? null
      : [...all].sort((one, other) => other.changed.localeCompare(one.changed));
  });
  /** The one that is open. */
  open: DraftSummary | null = $derived(
    this.drafts?.find((draft) => draft.id === address.query.d) ?? null,
  );
  /** Whether the policy shown is not the one that was saved. */
  isChanged: boolean = $derived.by(() => {
    if (this.open === null) {
      return false;
    }
    return !isSame(this.open, this.#model);
  });
  /** Whether a request that changes something is under way. */
  isBusy = $state(false);
  problem: Problem | null = $state.raw(null);

  /** Made while a component is set up. */
  constructor(model: PolicyModel) {
    this.#model = model;
    const log = address.log;
    if (log !== null) {
      this.#project.ask(log);
    }

    // A link that names a saved policy and no goal shows the goal of that policy.
    $effect(() => {
      const isBare = address.query.g === undefined && this.open !== null;
      if (isBare) {
        update(this.changesFor(this.open!), { replace: true });
      }
    });
  }

  /** The address of a saved policy. */
  changesFor(draft: DraftSummary): Record<string, string | null> {
    return { ...withGoal(plainGoal(draft.goal)), ...withMethod(draft.method), d: draft.id };
  }

  /** A name that no other saved policy has. */
  freeName(name: string): string {
    return freeName(name, this.drafts ?? []);
  }

  /** Saves the policy shown under a name; true if it was saved. */
  async saveAs(name: string): Promise<boolean> {
    const model = this.#model;
    const counts = model.counts;
    if (counts === null) {
      return false;
    }
    model.wish.release();
    return await this.#change(async () => {
      const body = { name, goal: model.goal, method: model.method };
      const draft = await saveDraft(counts.id, body);
      update({ d: draft.id, ...withMethod(draft.method) });
      announce(`Saved as ${name}.`);
    });
  }

  /**
   * Saves the policy shown in place of the one that is open.
   *
   * One that was changed elsewhere is not overwritten unless the reader saves again.
   */
  async save(): Promise<boolean> {
    const open = this.open;
    const model = this.#model;
    if (open === null) {
      return false;
    }
    model.wish.release();
    const isSaved = await this.#change(async () => {
      const now = await this.#read(open.id);
      if (!isSame(now, open)) {
        throw new Problem("stale", "");
      }
      const body = { goal: model.goal, method: model.method };
      const ifMatch = `"${now.etag}"`;
      const saved = await patch<Draft>(path`/v1/drafts/${open.id}`, body, { ifMatch });
      update(withMethod(saved.method), { replace: true });
      announce(`Saved ${open.name}.`);
    });
    if (this.problem?.slug === "not-found") {
      const title = `${open.name} was deleted in the meantime.`;
      this.problem = new Problem("not-found", title, "Save this policy as a new one.");
    } else if (this.problem?.slug === "stale") {
      const title = `${open.name} was changed elsewhere, and this policy is not saved.`;
      const detail = "Save it as a new one, or save it again to overwrite the other.";
      this.problem = new Problem("stale", title, detail);
    }
    return isSaved;
  }

  async delete(draft: DraftSummary): Promise<boolean> {
    return await this.#change(async () => {
      const ifMatch = `"${(await this.#read(draft.id)).etag}"`;
      await remove(path`/v1/drafts/${draft.id}`, { ifMatch });
      if (address.query.d === draft.id) {
        update({ d: null }, { replace: true });
      }
      announce(`Deleted ${draft.name}.`);
    });
  }

  /** A saved policy as it is now. */
  async #read(id: string): Promise<Draft> {
    return await get<Draft>(path`/v1/drafts/${id}`);
  }

  /** Makes a change, then asks for what there is now. */
  async #change(work: () => Promise<void>): Promise<boolean> {
    this.isBusy = true;
    this.problem = null;
    try {
      await work();
      return true;
    } catch (error) {
      this.problem = asProblem(error);
      return false;
    } finally {
      this.isBusy = false;
      this.#project.again();
      refreshProjects();
    }
  }
}

/** Whether two policies are the same, whatever they are called. */
function isSame(one: SavedPolicy, other: SavedPolicy): boolean {
  const isMethod = methodKey(one.method) === methodKey(other.method);
  return isMethod && sameGoal(plainGoal(one.goal), plainGoal(other.goal));
}
