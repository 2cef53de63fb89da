/** What Trust asks the service about a policy: its rule with the support, and a quick verdict. */

import type { Goal, PreviewRequest, Wanted } from "../../lib/types";
import type { Contender } from "./choice";

/** Models that a verdict is sampled from: they fix an interval to about 1.5 % of its width. */
export const SAMPLES = 2000;

/** States whose support is shown: a screen. */
const SHOWN_STATES = 12;

export interface Question {
  /** Text that is equal for equal questions. */
  key: string;
  counts: string;
  request: PreviewRequest;
}

/** The policy itself, without what there is to say of it. */
export function policyOf({ counts, goal, method }: Contender): Omit<Question, "key"> {
  return { counts, request: { goal, method } };
}

/** The rule and what it rests on; of many states those that are visited most. */
export function policyQuestion(contender: Contender, key: string, states: number): Question {
  const { goal, method, counts } = contender;
  const sort = states > SHOWN_STATES ? "visits" : "order";
  const want: Wanted = { rule: { first: SHOWN_STATES, sort }, ranges: true, visits: true };
  return { key, counts, request: { goal, method, want } };
}

/** A verdict by the policy's own goal, with what other methods would do, or by another goal. */
export function verdictQuestion(contender: Contender, key: string, judge: Goal | null): Question {
  const { goal, method, counts } = contender;
  const verdict = { samples: SAMPLES, judge, alternatives: judge === null };
  const want: Wanted = { rule: { first: 1 }, support: false, verdict };
  return { key, counts, request: { goal, method, want } };
}
