/** Verdicts against what was done, as signs with words. */

import type { GoalComparison } from "../../lib/types";
import type { IconName } from "../../parts/icons";

export interface Sign {
  icon: IconName;
  words: string;
}

export const SIGNS = {
  better: { icon: "up", words: "better than what was done" },
  worse: { icon: "down", words: "worse than what was done" },
  "cannot tell": { icon: "equal", words: "cannot tell" },
  alarm: { icon: "alarm", words: "alarm" },
} as const satisfies Record<string, Sign>;

/** The sign of a policy by a goal; an alarm comes before the verdict. */
export function signOf(judged: GoalComparison, id: string): Sign | undefined {
  if (judged.alarms.includes(id)) {
    return SIGNS.alarm;
  }
  const verdict = judged.verdicts[id];
  return verdict === undefined ? undefined : SIGNS[verdict];
}

/** Whether the mean of a policy is left out: it would suggest an answer that there is not. */
export function hidesMean(judged: GoalComparison, id: string): boolean {
  return judged.verdicts[id] === "cannot tell";
}

/** Whether means of what policies are compared with are left out: where all of theirs are. */
export function hidesReferences(judged: GoalComparison): boolean {
  return Object.keys(judged.verdicts).every((id) => hidesMean(judged, id));
}
