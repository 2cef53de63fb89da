/**
 * Why TL gives the actions of a state their probabilities, in the browser.
 *
 *     share(transition) = weight x similarity / (evidence and prior of all actions of the state)
 *
 * The shares of an action's transitions and that of the prior add up to its probability. The same
 * numbers as `explain` of the library, without what takes longer: intervals, episodes and rows.
 */

import { type Ideal, idealOf, peakOf, similarityOf } from "./ideal";
import type { Counts, Evidence, Explanation, Goal, Reason } from "./types";

type Transitions = NonNullable<Counts["transitions"]>;

/** Transitions of each state, found once for each table of counts. */
const grouped = new WeakMap<Transitions, Map<number, Transitions>>();

/** The distinct transitions that leave a state. */
export function transitionsFrom(transitions: Transitions, state: number): Transitions {
  let byState = grouped.get(transitions);
  if (byState === undefined) {
    byState = new Map();
    for (const each of transitions) {
      const ofState = byState.get(each[0]);
      if (ofState === undefined) {
        byState.set(each[0], [each]);
      } else {
        ofState.push(each);
      }
    }
    grouped.set(transitions, byState);
  }
  return byState.get(state) ?? [];
}

/** The reasons of a state by TL; null where the goal wants nothing or counts are not here. */
export function evidenceOf(counts: Counts, goal: Goal, state: string): Explanation | null {
  const place = counts.states.findIndex((each) => each.key === state);
  const ideal = idealOf(goal, counts);
  if (ideal === null || place < 0 || counts.transitions === null) {
    return null;
  }
  const transitions = transitionsFrom(counts.transitions, place);
  const peak = peakOf(ideal);

  // Evidence of each action, with its similarity in place of its share.
  const evidence = counts.actions.map((_, action): Evidence[] => {
    const ofAction = transitions.filter((each) => each[1] === action);
    return ofAction.map(([, , next, records, weight]) => {
      const similarity = weight * similarityOf(ideal, place, action, next, peak);
      const next_state = counts.states[next]!.key;
      return { next_state, records, similarity, share: similarity, rows: [] };
    });
  });

  // Shares of all that there is in the state.
  const priors = counts.actions.map((_, action) => priorOf(ideal, place, action));
  const found = evidence.flat().map((each) => each.similarity);
  const total = sum(found) + sum(priors) || 1;
  const reasons = counts.actions.map((action, index): [string, Reason] => {
    const shares = evidence[index]!.map((each) => ({ ...each, share: each.similarity / total }));
    shares.sort((one, other) => other.share - one.share);
    const prior = priors[index]! / total;
    return [action, reasonOf(shares, prior, isAllowed(ideal, place, index))];
  });
  return {
    state,
    action: null,
    method: "TL",
    measure: null,
    horizon: null,
    actions: Object.fromEntries(reasons),
    sentence: "",
    without_rows: null,
  };
}

function reasonOf(evidence: Evidence[], prior: number, is_allowed: boolean): Reason {
  const records = sum(evidence.map((each) => each.share));
  return {
    probability: records + prior,
    is_allowed,
    parts: { records, prior },
    adds_up: true,
    evidence,
    value: null,
    episodes: null,
    low: null,
    high: null,
  };
}

function isAllowed(ideal: Ideal, state: number, action: number): boolean {
  return ideal.forbidden[state * ideal.actions.length + action] !== 1;
}

function priorOf(ideal: Ideal, state: number, action: number): number {
  return isAllowed(ideal, state, action) ? ideal.prior : 0;
}

function sum(values: number[]): number {
  return values.reduce((total, each) => total + each, 0);
}

/** Numbers as shown: so many decimals, and whole multiples of the last one. */
export interface Rounded {
  digits: number;
  parts: number[];
  total: number;
}

/** Most decimals of a part: a millionth. */
const MOST_DIGITS = 6;

/**
 * Parts rounded such that those shown add up to the total shown.
 *
 * Each is rounded down, and those that lost most are rounded up until the sum is right. A total that
 * three decimals would show as 0 or 1 gets more of them.
 */
export function addingUp(parts: number[]): Rounded {
  const total = sum(parts);
  let digits = 3;
  const isTrivial = () => ["0", "1"].includes(String(Number(total.toFixed(digits))));
  while (digits < MOST_DIGITS && isTrivial() && total > 0 && total < 1) {
    digits += 1;
  }

  // In units of the last decimal.
  const unit = 10 ** digits;
  const exact = parts.map((each) => each * unit);
  const units = exact.map(Math.floor);
  const missing = Math.round(total * unit) - sum(units);
  const byRemainder = exact.map((each, index) => ({ index, rest: each - Math.floor(each) }));
  byRemainder.sort((one, other) => other.rest - one.rest);
  for (const { index } of byRemainder.slice(0, Math.max(0, missing))) {
    units[index]! += 1;
  }
  return { digits, parts: units.map((each) => each / unit), total: Math.round(total * unit) / unit };
}
