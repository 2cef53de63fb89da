/** Words on a verdict that several screens share. */

import { num } from "./format";
import type { Verdict } from "./types";

/** Why the log cannot say whether a policy is better than what was done. */
export function whyUnclear(verdict: Verdict): string {
  const deciding = verdict.comparisons.logged?.deciding;
  const low = deciding?.low ?? -Infinity;
  const high = deciding?.high ?? Infinity;
  const margin = num(verdict.margin);
  if (low >= -verdict.margin && high <= verdict.margin) {
    return `Any difference is at most ${margin}, which does not count.`;
  }
  if (low > 0) {
    return `Perhaps better, but not certainly by more than ${margin}.`;
  }
  if (high < 0) {
    return `Perhaps worse, but not certainly by more than ${margin}.`;
  }
  return "It may be better or worse; more records would narrow it down.";
}
