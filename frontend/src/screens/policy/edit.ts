/** Changes of a goal, one for each thing that a reader can do. Goals are never changed in place. */

import { plainGoal, type Way, WAYS } from "../../lib/goal";
import type { Counts, Goal, Mapping } from "../../lib/types";

export type Weights = Record<string, number>;

/** The weight of a name; names such as "constructor" have none by themselves. */
export function weightOf(weights: Weights, name: string): number {
  return Object.hasOwn(weights, name) ? weights[name]! : 0;
}

/**
 * Rows of a list of weights: those before, as far as they are still shown, then new ones. A row
 * that a slider took to zero stays where it is, since the slider may go on.
 */
export function rowsAfter(before: string[], weights: Weights, zeroed: Set<string>): string[] {
  const isShown = (name: string) => Object.hasOwn(weights, name) || zeroed.has(name);
  const known = new Set(before);
  const added = Object.keys(weights).filter((name) => !known.has(name));
  return [...before.filter(isShown), ...added];
}

/** Weights with one of them changed; 0 removes it. */
export function withWeight(weights: Weights, name: string, weight: number): Weights {
  const rounded = Math.round(weight * 1000) / 1000;
  if (rounded !== 0) {
    return { ...weights, [name]: rounded };
  }
  return Object.fromEntries(Object.entries(weights).filter(([each]) => each !== name));
}

/** A goal that says in one way what is wanted, as it must; the other ways go. */
export function withWay(goal: Goal, way: Way, value: unknown): Goal {
  const others = WAYS.filter((each) => each !== way);
  const kept = Object.entries(goal).filter(([name]) => !others.some((each) => each === name));
  return plainGoal({ ...Object.fromEntries(kept), [way]: value });
}

/** The wanted values of one field of the states. */
export function withTarget(goal: Goal, field: string, wanted: Weights): Goal {
  return withWay(goal, "targets", { ...goal.targets, [field]: wanted });
}

/** Whether an action is forbidden in a state: there, or everywhere. */
export function isForbidden(goal: Goal, state: string | null, action: string): boolean {
  const forbid = goal.forbid ?? [];
  return forbid.some(([place, each]) => each === action && (place === state || place === null));
}

/** An action that must not be taken in a state, or (null) in any. */
export function forbidding(goal: Goal, state: string | null, action: string): Goal {
  const others = (goal.forbid ?? []).filter((pair) => !isPair(pair, state, action));
  return { ...goal, forbid: [...others, [state, action]] };
}

/** An action that may be taken again where it was forbidden by this pair. */
export function allowing(goal: Goal, state: string | null, action: string): Goal {
  return { ...goal, forbid: (goal.forbid ?? []).filter((pair) => !isPair(pair, state, action)) };
}

function isPair(pair: [string | null, string], state: string | null, action: string): boolean {
  return pair[0] === state && pair[1] === action;
}

/** Whether a text reads as a condition on columns, such as `wage >= 2`. */
export function looksLikeCondition(text: string): boolean {
  return /[<>=!]|\s(in|is)\s/i.test(text) && text.trim().length > 2;
}

/** Whether states are cut from columns of numbers, so that conditions say more than their names. */
export function isCut(mapping: Mapping | null | undefined): boolean {
  const hasFeatures = (mapping?.features ?? []).length > 0;
  return hasFeatures || Object.keys(mapping?.bins ?? {}).length > 0;
}

/** Share of the log's records in each state. */
export function sharesOf(counts: Counts): number[] {
  const total = counts.states.reduce((sum, state) => sum + state.records, 0);
  return counts.states.map((state) => (total > 0 ? state.records / total : 0));
}

/** Share of the log's records that led to each state; null where there are too many transitions. */
export function ledSharesOf(counts: Counts): number[] | null {
  if (counts.transitions === null) {
    return null;
  }
  const led = new Array<number>(counts.states.length).fill(0);
  for (const [, , next, records] of counts.transitions) {
    led[next]! += records;
  }
  const total = led.reduce((sum, records) => sum + records, 0);
  return led.map((records) => (total > 0 ? records / total : 0));
}

/** Share of the log's records with each value of a field. */
export function fieldShares(counts: Counts, field: Counts["fields"][number]): number[] {
  const shares = new Array<number>(field.values.length).fill(0);
  sharesOf(counts).forEach((share, state) => {
    const value = field.of_state[state] ?? -1;
    if (value >= 0) {
      shares[value]! += share;
    }
  });
  return shares;
}

/** Ways in which what is wanted can be said of this log, by the words of the page. */
export function waysFor(counts: Counts, goal: Goal): { value: Way; text: string }[] {
  const ways: { value: Way; text: string }[] = [
    { value: "prefer", text: "the weight of each state" },
  ];
  if (counts.fields.length > 0) {
    ways.push({ value: "targets", text: "values of columns" });
  }
  ways.push({ value: "reward", text: "a reward of each state" });
  if (counts.has_rewards) {
    ways.push({ value: "maximise", text: "the reward of the log" });
  }
  if (goal.table !== undefined) {
    ways.push({ value: "table", text: "a table of probabilities" });
  }
  return ways;
}

/** The part of a goal that a problem points to, such as "floor" or "forbid". */
export function partOf(pointer: string | undefined): string | null {
  return /^\/goal\/([^/]+)/.exec(pointer ?? "")?.[1] ?? null;
}

/** The nearest step of a slider, and the next one in a direction: steps of 0.05, or 0.25. */
export function stepped(value: number, direction: number, isLarge: boolean, most: number): number {
  const step = isLarge ? 0.25 : 0.05;
  const number = value / step;
  const next = direction > 0 ? Math.floor(number + 1e-6) + 1 : Math.ceil(number - 1e-6) - 1;
  return Math.min(most, Math.max(0, Math.round(next * step * 1000) / 1000));
}
