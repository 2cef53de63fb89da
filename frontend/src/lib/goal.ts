/**
 * The goal of the address, and a goal in words.
 *
 *     const goal = goalOf(address.query);
 *     update(withGoal({ ...goal, floor: 0.001 }));
 *
 * A goal of the address has one form: labels with weights, pairs that are forbidden, nothing that
 * is zero or empty. Goals that were saved elsewhere have others, which `plainGoal` takes.
 */

import { type Changes, pack, type Query, unpack } from "./address.svelte";
import type { Goal } from "./types";

type Weights = Record<string, number>;

/** Parts of which a goal has one: what is wanted of the next state. */
export const WAYS = ["prefer", "targets", "reward", "table", "maximise"] as const;

export type Way = (typeof WAYS)[number];

/** A value as an object: what is a list of pairs, as `Goal.to_dict` writes it, becomes one. */
function asRecord(value: unknown): Record<string, unknown> {
  if (Array.isArray(value)) {
    const isPairs = value.every((pair) => Array.isArray(pair) && pair.length === 2);
    const pairs = value as [unknown, unknown][];
    return isPairs ? Object.fromEntries(pairs.map(([key, inner]) => [keyOf(key), inner])) : {};
  }
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** The key of a label as the library writes it: text as it is, anything else as JSON. */
function keyOf(label: unknown): string {
  if (Array.isArray(label)) {
    return `[${label.map((part) => JSON.stringify(part)).join(", ")}]`;
  }
  return typeof label === "string" ? label : JSON.stringify(label);
}

/** Labels with positive weights; a label alone, or in a list, has weight 1. */
function asWeights(value: unknown): Weights {
  if (typeof value === "string" || typeof value === "number") {
    return { [keyOf(value)]: 1 };
  }
  const isOfLabels = Array.isArray(value) && value.some((each) => !Array.isArray(each));
  if (isOfLabels) {
    return Object.fromEntries(value.map((label) => [keyOf(label), 1]));
  }
  const entries = Object.entries(asRecord(value));
  const isWanted = (weight: unknown) => typeof weight === "number" && weight > 0;
  return Object.fromEntries(entries.filter(([, weight]) => isWanted(weight))) as Weights;
}

/** Pairs of a state, null for every one, and an action. */
function asForbidden(value: unknown): [string | null, string][] {
  if (!Array.isArray(value)) {
    return [];
  }
  return value.flatMap((pair: unknown): [string | null, string][] => {
    const [state, action] = Array.isArray(pair)
      ? pair
      : [asRecord(pair).state, asRecord(pair).action];
    if (action === undefined) {
      return [];
    }
    return [[state === null || state === undefined ? null : keyOf(state), keyOf(action)]];
  });
}

/** Rewards by label, nested where they depend on more than the next state. */
function asNested(value: unknown): Record<string, unknown> {
  const entries = Object.entries(asRecord(value));
  return Object.fromEntries(
    entries.map(([key, inner]) => [key, typeof inner === "object" ? asNested(inner) : inner]),
  );
}

/** A goal in the form that the pages use, without parts that say nothing. */
export function plainGoal(given: unknown): Goal {
  const parts = asRecord(given);
  const targets = Object.entries(asRecord(parts.targets)).map(([name, wanted]) => {
    return [name, asWeights(wanted)] as const;
  });
  const goal: Goal = {
    prefer: asWeights(parts.prefer ?? {}),
    targets: Object.fromEntries(targets.filter(([, wanted]) => Object.keys(wanted).length > 0)),
    reward: asNested(parts.reward),
    table: asNested(parts.table),
    prefer_actions: asWeights(parts.prefer_actions ?? {}),
    forbid: asForbidden(parts.forbid),
    maximise: typeof parts.maximise === "string" ? parts.maximise : null,
    floor: typeof parts.floor === "number" ? parts.floor : null,
    action_floor: typeof parts.action_floor === "number" ? parts.action_floor : null,
  };
  if (typeof parts.temperature === "number" && parts.temperature !== 1) {
    goal.temperature = parts.temperature;
  }
  const isSaid = (part: unknown) => {
    return typeof part === "object" && part !== null ? Object.keys(part).length > 0 : part !== null;
  };
  return Object.fromEntries(Object.entries(goal).filter(([, part]) => isSaid(part))) as Goal;
}

/** The goal of an address; `{}` where there is none. */
export function goalOf(query: Query): Goal {
  return plainGoal(unpack<unknown>(query.g) ?? {});
}

/**
 * What is wrong with a link to a policy: a goal that was cut short, or a policy that is gone.
 *
 * `drafts` are the saved policies of the log, null until they are known.
 */
export function linkFault(query: Query, drafts: { id: string }[] | null): string | null {
  const isUnreadable = Boolean(query.g) && Object.keys(goalOf(query)).length === 0;
  if (isUnreadable) {
    return "The goal of this link cannot be read; the link may have been cut short.";
  }
  const isBare = !query.g && query.d !== undefined && drafts !== null;
  const isGone = isBare && !drafts.some((draft) => draft.id === query.d);
  return isGone ? "The policy of this link is gone; it may have been deleted." : null;
}

/** A goal as changes of the address; one that says nothing is removed. */
export function withGoal(goal: Goal): Changes {
  const plain = plainGoal(goal);
  return { g: Object.keys(plain).length > 0 ? pack(plain) : null };
}

/** The way in which a goal says what is wanted of next states. */
export function wayOf(goal: Goal): Way | null {
  const plain = plainGoal(goal);
  return WAYS.find((way) => plain[way] !== undefined) ?? null;
}

/** Whether a goal wants nothing, neither of states nor of actions: there is no policy for it. */
export function wantsNothing(goal: Goal): boolean {
  return wayOf(goal) === null && plainGoal(goal).prefer_actions === undefined;
}

/** Text that is equal for equal goals, in any order of their labels. */
export function goalKey(goal: Goal): string {
  return JSON.stringify(sorted(plainGoal(goal)));
}

export function sameGoal(one: Goal, other: Goal): boolean {
  return goalKey(one) === goalKey(other);
}

/** A value with the names of its objects, and forbidden pairs, in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((each) => JSON.stringify(each)).sort();
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const names = Object.keys(value).sort();
  return names.map((name) => [name, sorted((value as Record<string, unknown>)[name])]);
}

// A goal in words.

/** Labels of a sentence before the rest is counted. */
const MOST_LABELS = 5;

/** A key for people: the parts of a state of several columns with dots between, no empty text. */
export function labelName(key: string): string {
  if (key.trim() === "") {
    return "(empty)";
  }
  if (!key.startsWith("[")) {
    return key;
  }
  const parts = unpack<unknown>(key);
  return Array.isArray(parts) ? parts.map((part) => labelName(keyOf(part))).join(" · ") : key;
}

/** Alternatives with their weights where these differ: warm (1) or mild (0.5). */
function alternatives(weights: Weights): string {
  const entries = Object.entries(weights);
  const isEqual = new Set(Object.values(weights)).size < 2;
  const names = entries.map(([key, weight]) => {
    return isEqual ? labelName(key) : `${labelName(key)} (${Number(weight.toFixed(3))})`;
  });
  return joined(names, "or");
}

/** Names with a word between them; a long list ends in how many others there are. */
function joined(names: string[], word: string): string {
  if (names.length <= MOST_LABELS) {
    return names.join(` ${word} `);
  }
  const shown = names.slice(0, MOST_LABELS - 1);
  const others = names.length - shown.length;
  return `${shown.join(", ")} ${word} ${others} others`;
}

/** What must not be done, action by action. */
function neverWords(forbid: [string | null, string][]): string[] {
  const places = new Map<string, (string | null)[]>();
  for (const [state, action] of forbid) {
    places.set(action, [...(places.get(action) ?? []), state]);
  }
  const sentences = [...places].map(([action, states]) => {
    const isEverywhere = states.includes(null);
    const names = states.filter((state) => state !== null).map(labelName);
    return isEverywhere
      ? `never ${labelName(action)}`
      : `never ${labelName(action)} in ${joined(names, "or")}`;
  });
  const shown = sentences.slice(0, MOST_LABELS);
  const others = sentences.length - shown.length;
  return others > 0 ? [...shown, `and ${others} other actions never`] : shown;
}

/** A goal as a sentence without its full stop: "Be in warm (1) or mild (0.5); never vent". */
export function goalWords(given: Goal): string {
  const goal = plainGoal(given);
  const parts: string[] = [];
  if (goal.prefer) {
    parts.push(`be in ${alternatives(goal.prefer)}`);
  }
  for (const [name, wanted] of Object.entries(goal.targets ?? {})) {
    parts.push(`have ${name} ${alternatives(wanted)}`);
  }
  if (goal.reward) {
    parts.push("collect the reward of each state");
  }
  if (goal.maximise) {
    parts.push("collect the reward of the log");
  }
  if (goal.table) {
    parts.push("follow the given table of probabilities");
  }
  if (goal.prefer_actions) {
    parts.push(`preferably do ${alternatives(goal.prefer_actions)}`);
  }
  const isNothing = parts.length === 0;
  if (isNothing) {
    parts.push("nothing is wanted yet");
  }
  const sentence = [...parts, ...neverWords(goal.forbid ?? [])].join("; ");
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

/** A short name for a policy with a goal, such as "comfortable or warm". */
export function goalName(given: Goal): string {
  const goal = plainGoal(given);
  const words = goal.prefer ? alternatives(goal.prefer) : goalWords(goal).split(";")[0]!;
  const name = words.replaceAll(/ \([\d.]+\)/g, "");
  return name.length > 60 ? `${name.slice(0, 59)}…` : name;
}
