/**
 * What is compared, by the address: `p` policies, `goals` the goals of the table, `by` the goal of the
 * intervals, `only` and `tv` which states the rules show, `at` the first of them, `j` the job.
 */

import { type Changes, pack, type Query, unpack } from "../../lib/address.svelte";
import { goalKey, goalName } from "../../lib/goal";
import type { DraftSummary, Goal } from "../../lib/types";
import { distinctGoals } from "./goals";

/** Most policies of a comparison, as the service takes them. */
export const MOST = 8;

/** What was done, among the policies. */
export const LOGGED = "logged";

/** Total variation within which two rules count as equal: a shift of 5 % of the decisions. */
const LIMIT = 0.05;

/** The policies that the address names; null where it names none. */
export function idsOf(query: Query): string[] | null {
  if (query.p === undefined) {
    return null;
  }
  const ids = query.p.split(",").filter((id) => id !== "");
  return [...new Set(ids)];
}

/** The policies to begin with: the open one first, then the newest, all on the same counts. */
export function firstSelection(
  drafts: DraftSummary[],
  open: string | undefined,
  counts: string | null,
): string[] {
  const start = drafts.find((draft) => draft.id === open);
  const basis = start?.counts ?? counts;
  const newest = drafts
    .filter((draft) => draft.counts === basis && draft !== start)
    .slice(-(start === undefined ? MOST : MOST - 1));
  const chosen = start === undefined ? newest : [start, ...newest];
  return chosen.map((draft) => draft.id);
}

/** The chosen policies that are saved here. */
export function chosenDrafts(ids: string[], drafts: DraftSummary[]): DraftSummary[] {
  const found = ids.map((id) => drafts.find((draft) => draft.id === id));
  return found.filter((draft) => draft !== undefined).slice(0, MOST);
}

/** The policies that are not saved here. */
export function unknownIds(ids: string[], drafts: DraftSummary[]): string[] {
  const known = new Set([LOGGED, ...drafts.map((draft) => draft.id)]);
  return ids.filter((id) => !known.has(id));
}

/** The goals to judge by: those of the address, or those of the policies. */
export function goalsOf(query: Query, chosen: DraftSummary[]): Goal[] {
  const given = unpack<Goal[]>(query.goals);
  const isList = Array.isArray(given) && given.length > 0;
  const goals = isList ? given : chosen.map((draft) => draft.goal);
  return distinctGoals(goals).slice(0, MOST);
}

/** The goal of the intervals: that of the address, or the first. */
export function judgeOf(query: Query, goals: Goal[]): Goal | undefined {
  const given = unpack<Goal>(query.by);
  const key = given === null ? null : goalKey(given);
  return goals.find((goal) => goalKey(goal) === key) ?? goals[0];
}

/** The limit of the total variation. */
export function limitOf(query: Query): number {
  const given = Number(query.tv ?? LIMIT);
  return given >= 0 && given < 1 ? given : LIMIT;
}

/** The address with a policy added, or removed. */
export function toggled(ids: string[], id: string): Changes {
  const next = ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id];
  return { p: next.join(","), at: null };
}

/** The address with a goal added to the table, or removed. */
export function goalToggled(goals: Goal[], goal: Goal): Changes {
  const key = goalKey(goal);
  const others = goals.filter((each) => goalKey(each) !== key);
  const next = others.length < goals.length ? others : [...goals, goal];
  return { goals: next.length > 0 ? pack(next) : null };
}

/** What a goal is called: as the first policy that was saved for it, or in words. */
export function nameOfGoal(goal: Goal, drafts: DraftSummary[]): string {
  const key = goalKey(goal);
  return drafts.find((draft) => goalKey(draft.goal) === key)?.name ?? goalName(goal);
}
