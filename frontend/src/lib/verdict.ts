/**
 * What a verdict says after everything that overrules it, and whether means may be shown.
 *
 * Where the answer is *cannot tell*, no mean is shown anywhere, only intervals.
 */

import { num, pct } from "./format";
import type { Verdict, VerdictWord } from "./types";

/** Fewer samples give no verdict: none of them lies outside a 95 % interval. */
export const FEWEST_SAMPLES = 40;

/** Models whose optimum is computed, about; no verdict rests on it. */
const SAMPLES_OF_OPTIMUM = 200;

/** What the best possible is: its mean is that of fewer models where there are many. */
export function optimumNote(samples: number): string {
  const isPart = samples > SAMPLES_OF_OPTIMUM;
  return isPart ? `knowing each model, on about ${SAMPLES_OF_OPTIMUM} of them` : "knowing each model";
}

export function hasVerdict(verdict: Verdict): boolean {
  return verdict.samples >= FEWEST_SAMPLES;
}

/** Whether findings or objections make the comparison unfair. */
export function isOverruled(verdict: Verdict): boolean {
  return verdict.overruled_by.length > 0;
}

/** The verdict against a reference, after everything that overrules it. */
export function wordAgainst(verdict: Verdict, reference: string): VerdictWord {
  const isClear = hasVerdict(verdict) && !isOverruled(verdict);
  const word = verdict.comparisons[reference]?.verdict;
  return isClear && word !== undefined ? word : "cannot tell";
}

/** Whether means are left out: they would suggest an answer that there is not. */
export function hidesMeans(verdict: Verdict): boolean {
  return wordAgainst(verdict, "logged") === "cannot tell";
}

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

/** The alarm in words: against what, by how much, and how likely harm is. */
export function alarmWords(verdict: Verdict): string {
  const { alarm } = verdict;
  const parts: string[] = [];
  if (alarm.worse_than_logged) {
    parts.push("By the log this policy would do worse than what was done.");
  }
  if (alarm.expected_difference < -alarm.limit) {
    const isClear = wordAgainst(verdict, "random") === "worse";
    const size = isClear ? `, by ${num(-alarm.expected_difference)}` : "";
    parts.push(`It is expected to do worse than acting at random${size}.`);
  }
  const chance = pct(alarm.chance_of_harm);
  parts.push(`The chance that it loses more than ${num(alarm.harm)} against random is ${chance}.`);
  return parts.join(" ");
}
