/**
 * A line on every state: what the policy does there, how sure, how often it was seen, and how much it
 * differs from what was done. Pages with counts work it out; of very large systems the service sends
 * it (`overview`).
 */

import type { Counts, Overview } from "../../lib/types";

export interface Lines {
  /** Likeliest action of each state. */
  does: ArrayLike<number>;
  /** Its probability. */
  chance: ArrayLike<number>;
  /** Its records. */
  seen: ArrayLike<number>;
  /** The action that was done most; -1 where the state has no record. */
  did: ArrayLike<number>;
  /** Total variation between the policy and what was done. */
  change: ArrayLike<number>;
  /** Expected share of time; null until it is known. */
  visits: ArrayLike<number> | null;
  /** States whose rule rests on next to nothing. */
  weak: Set<number>;
}

/** What a page knows of a policy: flat arrays, state by state. */
export interface Policy {
  rule: Float64Array;
  before: Float64Array;
  visits: ArrayLike<number> | null;
  weak: Set<number>;
}

type Transitions = NonNullable<Counts["transitions"]>;

const known = new WeakMap<Transitions, Float64Array>();

/** Records of each state and action: [S, A]; counted once for each table. */
export function recordsOfPairs(counts: Counts): Float64Array | null {
  const { transitions } = counts;
  if (transitions === null) {
    return null;
  }
  let records = known.get(transitions);
  if (records === undefined) {
    const numActions = counts.actions.length;
    records = new Float64Array(counts.states.length * numActions);
    for (const [state, action, , number] of transitions) {
      records[state * numActions + action]! += number;
    }
    known.set(transitions, records);
  }
  return records;
}

/** Index of the largest number of a part of an array, from its start. */
function largest(values: Float64Array, start: number, size: number): number {
  let best = 0;
  for (let index = 1; index < size; index += 1) {
    if (values[start + index]! > values[start + best]!) {
      best = index;
    }
  }
  return best;
}

export function linesOf(counts: Counts, policy: Policy): Lines {
  const { rule, before } = policy;
  const numStates = counts.states.length;
  const numActions = counts.actions.length;
  const records = recordsOfPairs(counts);
  const lines = {
    does: new Int32Array(numStates),
    chance: new Float64Array(numStates),
    seen: new Float64Array(numStates),
    did: new Int32Array(numStates),
    change: new Float64Array(numStates),
    visits: policy.visits,
    weak: policy.weak,
  };
  for (let state = 0; state < numStates; state += 1) {
    const start = state * numActions;
    const does = largest(rule, start, numActions);
    let distance = 0;
    for (let cell = start; cell < start + numActions; cell += 1) {
      distance += Math.abs(rule[cell]! - before[cell]!);
    }
    const hasRecords = (counts.states[state]?.records ?? 0) > 0;
    lines.does[state] = does;
    lines.chance[state] = rule[start + does]!;
    lines.seen[state] = records?.[start + does] ?? 0;
    lines.did[state] = hasRecords ? largest(before, start, numActions) : -1;
    lines.change[state] = distance / 2;
  }
  return lines;
}

/** The lines that the service sent. */
export function linesOfOverview(overview: Overview): Lines {
  return { ...overview, weak: new Set(overview.weak) };
}
