/**
 * A goal as arrays: how much each next state and each action is wanted, and what is forbidden.
 *
 * The same numbers as `Goal.on` of the library: with preferences and a floor, every other state has
 * exactly the floor, and the preferred ones share the rest in proportion to their weights.
 */

import type { Counts, Goal } from "./types";

/** Total prior count of a state where the goal is a reward: that of `default_prior_count`. */
const REWARD_PRIOR = 0.01;

/** What is wanted, as arrays. */
export interface Ideal {
  /** Ideal weight of each next state: [S]. */
  next: Float64Array;
  /** Ideal weight of each action: [A]. */
  actions: Float64Array;
  /** 1 where an action must not be taken: [S, A]. */
  forbidden: Uint8Array;
  /** Prior concentration of an allowed action. */
  prior: number;
}

/** A goal that cannot be met, or that the browser cannot work out, with the reason. */
export class GoalProblem extends Error {
  /**
   * @param part - the part of the goal that causes it, such as "floor"
   */
  constructor(
    message: string,
    readonly part: string,
  ) {
    super(message);
  }
}

/** Names of a goal's labels as indices. */
function indexOf(names: string[]): Map<string, number> {
  return new Map(names.map((name, index) => [name, index]));
}

/** Labels with positive weights, as `Goal` takes them. */
function positive(weights: Record<string, number>): [string, number][] {
  return Object.entries(weights).filter(([, weight]) => weight > 0);
}

/** Probabilities: others have exactly the floor, wanted labels share the rest. */
function shares(
  weights: [string, number][],
  names: string[],
  floor: number | null | undefined,
  counts: Counts,
  part: string,
): Float64Array {
  const index = indexOf(names);
  const numOthers = names.length - weights.length;
  const smallest = counts.smallest_probability;
  const lowered = Math.min(smallest.default, smallest.others_share / numOthers);
  const defaultFloor = numOthers > 0 ? lowered : 0;
  const ofOthers = floor ?? defaultFloor;
  const rest = 1 - ofOthers * numOthers;
  if (rest <= 0) {
    const ofFloor = part === "prefer_actions" ? "action_floor" : "floor";
    throw new GoalProblem("The floor leaves nothing for what is wanted; lower it.", ofFloor);
  }

  let total = 0;
  for (const [, weight] of weights) {
    total += weight;
  }
  const result = new Float64Array(names.length).fill(ofOthers);
  for (const [name, weight] of weights) {
    const place = index.get(name);
    if (place === undefined) {
      throw new GoalProblem(`There is no “${name}” in the log.`, part);
    }
    result[place] = (rest * weight) / total;
  }
  return result;
}

/** Ideal of next states by the wanted values of fields; fields multiply. */
function byTargets(
  targets: Record<string, Record<string, number>>,
  floor: number | null | undefined,
  counts: Counts,
): Float64Array {
  const product = new Float64Array(counts.states.length).fill(1);
  for (const [name, wanted] of Object.entries(targets)) {
    const field = counts.fields.find((each) => each.name === name);
    if (field === undefined) {
      throw new GoalProblem(`The states have no field “${name}”.`, "targets");
    }
    const ofValue = shares(positive(wanted), field.values, floor, counts, "targets");
    field.of_state.forEach((value, state) => {
      product[state] = product[state]! * ofValue[value]!;
    });
  }
  const total = product.reduce((sum, each) => sum + each, 0);
  return product.map((each) => each / total);
}

/** Unnormalised ideal of a reward by next state: exp((reward - best) / temperature). */
function byReward(reward: Record<string, number>, temperature: number, states: string[]) {
  const index = indexOf(states);
  const values = new Float64Array(states.length);
  for (const [name, value] of Object.entries(reward)) {
    const place = index.get(name);
    if (place === undefined) {
      throw new GoalProblem(`There is no state “${name}” in the log.`, "reward");
    }
    values[place] = value;
  }
  const best = values.reduce((largest, each) => Math.max(largest, each), -Infinity);
  return values.map((each) => Math.exp((each - best) / temperature));
}

/** Whether the browser can work a goal out by itself; otherwise the service does it. */
export function canLearn(goal: Goal, counts: Counts): boolean {
  if (counts.transitions === null || isFilled(goal.table) || goal.maximise) {
    return false;
  }
  const states = new Set(counts.states.map((state) => state.key));
  const isKnown = (key: string) => states.has(key);
  const rewards = Object.values(goal.reward ?? {});
  const targets = Object.entries(goal.targets ?? {});
  return (
    Object.keys(goal.prefer ?? {}).every(isKnown) &&
    Object.keys(goal.reward ?? {}).every(isKnown) &&
    rewards.every((reward) => typeof reward === "number") &&
    targets.every(([name, wanted]) => {
      const field = counts.fields.find((each) => each.name === name);
      const values = field?.values ?? [];
      const isOfEveryState = field?.of_state.every((value) => value >= 0) ?? false;
      return isOfEveryState && Object.keys(wanted).every((value) => values.includes(value));
    }) &&
    (goal.forbid ?? []).every(([state]) => state === null || isKnown(state))
  );
}

function isFilled(table: Record<string, unknown> | undefined): boolean {
  return table !== undefined && Object.keys(table).length > 0;
}

/**
 * A goal as arrays, or null where it wants nothing.
 *
 * @throws GoalProblem where the goal is impossible
 */
export function idealOf(goal: Goal, counts: Counts): Ideal | null {
  const states = counts.states.map((state) => state.key);
  const numStates = states.length;
  const numActions = counts.actions.length;
  const prefer = positive(goal.prefer ?? {});
  const preferActions = positive(goal.prefer_actions ?? {});

  // Next states.
  let next: Float64Array;
  let isReward = false;
  if (isFilled(goal.targets)) {
    next = byTargets(goal.targets ?? {}, goal.floor, counts);
  } else if (isFilled(goal.reward)) {
    isReward = true;
    next = byReward(goal.reward as Record<string, number>, goal.temperature ?? 1, states);
  } else if (prefer.length > 0) {
    next = shares(prefer, states, goal.floor, counts, "prefer");
  } else if (preferActions.length > 0) {
    next = new Float64Array(numStates).fill(1 / numStates);
  } else {
    return null;
  }

  // Actions: a reward has none, without preferences all are equal.
  let actions = new Float64Array(numActions).fill(isReward ? 1 : 1 / numActions);
  if (preferActions.length > 0) {
    const floor = goal.action_floor;
    const ofActions = shares(preferActions, counts.actions, floor, counts, "prefer_actions");
    actions = new Float64Array(ofActions);
  }

  const forbidden = forbiddenOf(goal, states, counts.actions);
  const prior = isReward ? REWARD_PRIOR / numActions : least(next) * least(actions);
  return { next, actions, forbidden, prior };
}

/** How much each next state is wanted; null where that is not plain to the browser. Needs no log. */
export function nextIdeal(goal: Goal, counts: Counts): Float64Array | null {
  const isPlain = canLearn(goal, { ...counts, transitions: [] });
  try {
    return isPlain ? (idealOf(goal, counts)?.next ?? null) : null;
  } catch {
    return null; // an impossible goal: the policy says so
  }
}

/** The smallest positive number. */
function least(values: Float64Array): number {
  return values.reduce((smallest, each) => (each > 0 ? Math.min(smallest, each) : smallest), 1);
}

/** Mask of what must not be done: [S, A]. */
export function forbiddenOf(goal: Goal, states: string[], actions: string[]): Uint8Array {
  const stateIndex = indexOf(states);
  const actionIndex = indexOf(actions);
  const mask = new Uint8Array(states.length * actions.length);
  for (const [state, action] of goal.forbid ?? []) {
    const column = actionIndex.get(action);
    if (column === undefined) {
      throw new GoalProblem(`There is no action “${action}” in the log.`, "forbid");
    }
    const rows = state === null ? states.keys() : [stateIndex.get(state) ?? -1];
    for (const row of rows) {
      if (row >= 0) {
        mask[row * actions.length + column] = 1;
      }
    }
  }

  // Every state needs an action.
  states.forEach((state, row) => {
    const ofState = mask.subarray(row * actions.length, (row + 1) * actions.length);
    if (ofState.every((each) => each === 1)) {
      const message = `Nothing is allowed in ${state}; allow at least one action there.`;
      throw new GoalProblem(message, "forbid");
    }
  });
  return mask;
}

/** Similarity of a transition relative to the best one: 1 for what is wanted most. */
export function similarityOf(
  ideal: Ideal,
  state: number,
  action: number,
  next: number,
  peak = peakOf(ideal),
): number {
  const numActions = ideal.actions.length;
  if (ideal.forbidden[state * numActions + action] === 1) {
    return 0;
  }
  return (ideal.next[next]! * ideal.actions[action]!) / peak;
}

/** The largest product of the ideal. */
export function peakOf(ideal: Ideal): number {
  const most = (values: Float64Array) => values.reduce((a, b) => Math.max(a, b), 0);
  return most(ideal.next) * most(ideal.actions);
}
