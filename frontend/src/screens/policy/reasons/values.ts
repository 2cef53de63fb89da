/** Values of the actions of a state, compared: what a planner's probabilities follow from. */

import type { Explanation, Reason } from "../../../lib/types";

export interface Compared {
  action: string;
  /** Value of the action minus that of the best one, or of the policy; null where it is forbidden. */
  difference: number | null;
  /** Standard deviation of the difference, where one is known. */
  deviation: number | null;
  isBest: boolean;
}

export interface Comparison {
  lines: Compared[];
  /** Actions that are not shown. */
  others: number;
  /** Whether the policy does the best action, so that differences to it are differences to that. */
  isToBest: boolean;
}

/** Probability from which a policy does nothing else. */
const ALWAYS = 0.999;

/** Parts of a plan that are shown in another way. */
const NAMES: Record<string, string> = {
  deviation: "standard deviation",
  example: "the past’s example",
  borrowed: "rests on other states and actions",
};

export function partName(name: string): string {
  return NAMES[name] ?? name;
}

/** What the action's difference is: by samples of an evaluation, or by the plan itself. */
function differenceOf(reason: Reason, best: number): number | null {
  if (!reason.is_allowed) {
    return null;
  }
  if (reason.value !== null) {
    return reason.value.difference;
  }
  const value = reason.parts.value;
  return value === undefined || value === null ? null : value - best;
}

/**
 * The actions of a state by their value, best first; the chosen one is always among them.
 *
 * @param most - actions that are shown
 */
export function comparisonOf(
  explanation: Explanation,
  actions: string[],
  chosen: string,
  most: number,
): Comparison {
  const reasons = actions.flatMap((action) => {
    const reason = explanation.actions[action];
    return reason === undefined ? [] : [{ action, reason }];
  });
  const best = reasons.reduce((top, { reason }) => {
    return reason.is_allowed ? Math.max(top, reason.parts.value ?? -Infinity) : top;
  }, -Infinity);
  const likeliest = reasons.reduce((top, { reason }) => Math.max(top, reason.probability), 0);
  const hasValues = reasons.some(({ reason }) => reason.value !== null);
  const isToBest = !hasValues || likeliest >= ALWAYS;

  const compared = reasons.map(({ action, reason }): Compared => {
    const isDone = hasValues ? reason.probability >= ALWAYS : reason.parts.value === best;
    return {
      action,
      difference: differenceOf(reason, best),
      deviation: reason.value?.difference_deviation ?? null,
      isBest: isToBest && isDone,
    };
  });
  compared.sort((one, other) => rank(other) - rank(one));
  const isShown = (line: Compared, index: number) => index < most || line.action === chosen;
  const lines = compared.filter(isShown);
  return { lines, others: compared.length - lines.length, isToBest };
}

/** The best first, forbidden ones last. */
function rank(line: Compared): number {
  return line.isBest ? Infinity : (line.difference ?? -Infinity);
}

/** What the past's example adds, in standard deviations of the value; null where it adds nothing. */
export function exampleOf(reason: Reason): number | null {
  const example = reason.parts.example ?? null;
  const deviation = reason.parts.deviation ?? 0;
  return example === null || deviation <= 0 ? null : example / deviation;
}

/** Decimals that show two digits of the smallest number; at least two, at most six. */
export function digitsFor(numbers: number[]): number {
  const sizes = numbers.map(Math.abs).filter((size) => size > 1e-9);
  if (sizes.length === 0) {
    return 3;
  }
  const smallest = Math.min(...sizes);
  return Math.max(2, Math.min(6, 1 - Math.floor(Math.log10(smallest))));
}
