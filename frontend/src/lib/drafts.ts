/** Saving policies of a log: drafts of the service. */

import { path, post } from "./api";
import { refreshProjects } from "./projects.svelte";
import type { Draft, Goal } from "./types";

interface NewDraft {
  name: string;
  goal: Goal;
  method: string;
}

/** Saves a policy; the list of logs follows. */
export async function saveDraft(counts: string, draft: NewDraft): Promise<Draft> {
  const saved = await post<Draft>(path`/v1/counts/${counts}/drafts`, draft);
  refreshProjects();
  return saved;
}

/** A name that no saved policy has yet: comfortable, comfortable 2, … */
export function freeName(wanted: string, drafts: { name: string }[]): string {
  const taken = new Set(drafts.map((draft) => draft.name));
  let name = wanted;
  for (let number = 2; taken.has(name); number += 1) {
    name = `${wanted} ${number}`;
  }
  return name;
}
