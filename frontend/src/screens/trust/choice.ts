/** Which policy is looked at, and by which goal it is judged: what the address says of both. */

import { type Changes, pack, type Query } from "../../lib/address.svelte";
import { goalKey, goalName, goalOf, plainGoal, sameGoal, wantsNothing } from "../../lib/goal";
import { DEFAULT_METHOD, methodKey, withMethod } from "../../lib/methods";
import type { DraftSummary, Goal, Project } from "../../lib/types";

/** The policy that is looked at: a saved one, or the goal of the address. */
export interface Contender {
  draft: DraftSummary | null;
  goal: Goal;
  method: string;
  /** Counts that it rests on. */
  counts: string;
  name: string;
}

/**
 * The policy of an address.
 *
 * A goal of the address that was saved is its draft. Without a goal it is the draft of the address,
 * and without both the draft that was changed last. Null where nothing is wanted yet.
 */
export function contenderOf(query: Query, project: Project): Contender | null {
  const goal = goalOf(query);
  const method = query.m ?? DEFAULT_METHOD;
  const named = project.drafts.find((draft) => draft.id === query.d);
  if (wantsNothing(goal)) {
    const draft = named ?? newest(project.drafts);
    return draft === undefined ? null : ofDraft(draft);
  }

  const isSame = (draft: DraftSummary) => {
    return methodKey(draft.method) === methodKey(method) && sameGoal(draft.goal, goal);
  };
  const saved = project.drafts.filter((draft) => isSame(draft) && draft.counts === project.counts);
  const draft = named !== undefined && isSame(named) ? named : newest(saved);
  if (draft !== undefined) {
    return ofDraft(draft);
  }
  if (project.counts === null) {
    return null;
  }
  return { draft: null, goal, method, counts: project.counts, name: goalName(goal) };
}

function ofDraft(draft: DraftSummary): Contender {
  const { goal, method, counts, name } = draft;
  return { draft, goal, method, counts, name };
}

function newest(drafts: DraftSummary[]): DraftSummary | undefined {
  return [...drafts].sort((one, other) => one.changed.localeCompare(other.changed)).at(-1);
}

/** Text that is equal for equal policies. */
export function contenderKey(contender: Contender): string {
  return `${contender.counts} ${contender.method} ${goalKey(contender.goal)}`;
}

/** Saved goals by which a policy can be judged, each once, except its own. */
export function judgesFor(contender: Contender, drafts: DraftSummary[]): DraftSummary[] {
  const known = new Set([goalKey(contender.goal)]);
  return drafts.filter((draft) => {
    const key = goalKey(draft.goal);
    const isNew = !known.has(key);
    known.add(key);
    return isNew;
  });
}

/** The saved goal of the address that judges; null where that is the policy's own. */
export function judgeOf(query: Query, contender: Contender, drafts: DraftSummary[]) {
  const chosen = drafts.find((draft) => draft.id === query.j);
  const isOwn = chosen === undefined || sameGoal(chosen.goal, contender.goal);
  return isOwn ? null : chosen;
}

/** Changes of the address that choose a draft; what was found out about another one goes. */
export function withDraft(draft: DraftSummary): Changes {
  return { d: draft.id, g: pack(plainGoal(draft.goal)), ...withMethod(draft.method), x: null };
}
