/** What Goal & policy asks the service, and its answers as arrays. */

import type { Counts, Goal, Overview, Preview, PreviewRequest, Wanted } from "../../lib/types";

export interface Question {
  counts: string;
  /** Names the policy: equal for equal policies. */
  key: string;
  request: PreviewRequest;
}

/** A policy as arrays, state by state. */
export interface Shown {
  key: string;
  rule: Float64Array;
  before: Float64Array;
  support: { records: Float64Array; similarity: Float64Array };
  forbidden: Uint8Array;
  weak: Set<number>;
  ideal: Float64Array | null;
  visits: { before: Float64Array; after: Float64Array } | null;
  /** A line on every state, in place of the arrays of a system that a page cannot hold. */
  overview: Overview | null;
}

/** Above this many states a page asks for a line on each, and for the rule of those in view. */
const WHOLE_STATES = 300;

/** The request for a policy, without a verdict. */
export function questionFor(counts: Counts, key: string, goal: Goal, method: string): Question {
  const want: Wanted = { visits: true };
  const isVast = counts.transitions === null && counts.states.length > WHOLE_STATES;
  if (isVast) {
    want.rule = { first: 1 };
    want.overview = true;
    want.support = false;
    want.ideal = false;
  }
  return { counts: counts.id, key, request: { goal, method, want } };
}

/**
 * The request for the verdict on a policy, and as little else as possible.
 *
 * @param samples - models that it is sampled from
 */
export function verdictFor(policy: Question, samples: number): Question {
  const want: Wanted = { rule: { first: 1 }, support: false, ideal: false, verdict: { samples } };
  return { ...policy, request: { ...policy.request, want } };
}

/** An answer of the service as arrays. */
export function shownOf(answer: Preview, key: string): Shown {
  const numActions = answer.rule.actions.length;
  const forbidden = new Uint8Array(answer.rule.states.length * numActions);
  for (const [state, action] of answer.forbidden) {
    forbidden[state * numActions + action] = 1;
  }
  const visits = answer.visits;
  return {
    key,
    rule: flat(answer.rule.p),
    before: flat(answer.behaviour.p),
    support: {
      records: Float64Array.from(answer.support?.records ?? []),
      similarity: Float64Array.from(answer.support?.similarity ?? []),
    },
    forbidden,
    weak: new Set(answer.overview?.weak ?? answer.weak),
    overview: answer.overview,
    ideal: answer.ideal === null ? null : Float64Array.from(answer.ideal),
    visits: visits && {
      before: Float64Array.from(visits.before),
      after: Float64Array.from(visits.after),
    },
  };
}

/** Rows one after the other. */
function flat(rows: number[][]): Float64Array {
  const width = rows[0]?.length ?? 0;
  const result = new Float64Array(rows.length * width);
  rows.forEach((row, index) => result.set(row, index * width));
  return result;
}

/** Whether a rule [S, A] is what was done before, but for small changes, in each of these states. */
export function repeatsBefore(
  rule: Float64Array,
  before: Float64Array,
  states: Iterable<number>,
  width: number,
  tolerance = 0.05,
): boolean {
  return [...states].every((state) => {
    const row = rule.subarray(state * width, (state + 1) * width);
    return row.every((p, action) => Math.abs(p - before[state * width + action]!) <= tolerance);
  });
}

/** States in which the records are next to nothing similar to the goal. */
export function weakStates(similarity: Float64Array, counts: Counts): Set<number> {
  const weak = new Set<number>();
  counts.states.forEach((state, index) => {
    if (!state.terminal && similarity[index]! < counts.weak) {
      weak.add(index);
    }
  });
  return weak;
}
