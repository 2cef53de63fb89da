/**
 * TL in the browser: the rule that `pastwise` learns by similarity, from counts and a goal.
 *
 * This is what follows a slider while it moves; the server's answer replaces it on release. A test
 * compares both to 1e-9. The flow is that of the library:
 *
 *     goal -> ideal of next states and actions -> similarity of each transition
 *          -> evidence of each state and action -> rule
 *
 *     similarity(s, a, n) = ideal(n) ideal(a) / largest of all such products
 *     rule(a | s)         = (evidence[s, a] + prior) / sum over actions
 *
 * States, actions and fields are indices of `Counts`; arrays are flat, row by row.
 */

import { type Ideal, idealOf, peakOf } from "./ideal";
import type { Counts, Goal } from "./types";

export interface Support {
  records: Float64Array;
  /** Total similarity of the records of each state. */
  similarity: Float64Array;
  /** Number of equally similar records that would be as informative. */
  effective: Float64Array;
  /** The part of the rule that comes from the prior. */
  priorShare: Float64Array;
}

export interface Learned {
  /** Probability of each action in each state: [S, A]. */
  rule: Float64Array;
  support: Support;
  ideal: Ideal;
}

/** The rule and what it rests on; null where the goal wants nothing or counts are not here. */
export function learn(counts: Counts, goal: Goal): Learned | null {
  const ideal = idealOf(goal, counts);
  if (ideal === null || counts.transitions === null) {
    return null;
  }
  const numStates = counts.states.length;
  const numActions = counts.actions.length;
  const peak = peakOf(ideal);

  // Evidence of each state and action, and sums over the records of each state.
  const evidence = new Float64Array(numStates * numActions);
  const records = new Float64Array(numStates);
  const similarity = new Float64Array(numStates);
  const squares = new Float64Array(numStates);
  for (const [state, action, next, number, weight, weightSquared] of counts.transitions) {
    const cell = state * numActions + action;
    records[state]! += number;
    if (ideal.forbidden[cell] === 1) {
      continue;
    }
    const each = (ideal.next[next]! * ideal.actions[action]!) / peak;
    evidence[cell]! += weight * each;
    similarity[state]! += weight * each;
    squares[state]! += weightSquared * each * each;
  }

  // The rule: evidence and prior, as shares of each state.
  const rule = new Float64Array(numStates * numActions);
  const effective = new Float64Array(numStates);
  const priorShare = new Float64Array(numStates);
  for (let state = 0; state < numStates; state += 1) {
    const start = state * numActions;
    let total = 0;
    let priorTotal = 0;
    for (let cell = start; cell < start + numActions; cell += 1) {
      const prior = ideal.forbidden[cell] === 1 ? 0 : ideal.prior;
      rule[cell] = evidence[cell]! + prior;
      total += rule[cell]!;
      priorTotal += prior;
    }
    for (let cell = start; cell < start + numActions; cell += 1) {
      rule[cell]! /= total;
    }
    priorShare[state] = priorTotal / total;
    if (squares[state]! > 0) {
      effective[state] = similarity[state]! ** 2 / squares[state]!;
    }
  }
  return { rule, support: { records, similarity, effective, priorShare }, ideal };
}

/** Share of each action in the records of each state; equal shares where there are none: [S, A]. */
export function behaviour(counts: Counts): Float64Array {
  const numActions = counts.actions.length;
  const weights = new Float64Array(counts.states.length * numActions);
  const totals = new Float64Array(counts.states.length);
  for (const [state, action, , , weight] of counts.transitions ?? []) {
    weights[state * numActions + action]! += weight;
    totals[state]! += weight;
  }
  return weights.map((weight, cell) => {
    const total = totals[Math.floor(cell / numActions)]!;
    return total > 0 ? weight / total : 1 / numActions;
  });
}
