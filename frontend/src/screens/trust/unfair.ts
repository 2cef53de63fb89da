/** Why a comparison is not fair: objections of the evaluation, and findings about the log. */

import { sentence } from "../../lib/format";
import type { Finding, Verdict } from "../../lib/types";

export interface Unfair {
  code: string;
  title: string;
  text: string;
  /** Whether the log itself has a finding with more about it. */
  isFinding: boolean;
}

const TITLES: Record<string, string> = {
  "action-constant": "Nobody changed what was done.",
  "few-episodes": "Too few episodes speak for an action.",
  "action-determines-outcome": "The action alone decides what follows.",
  "action-is-outcome": "The action records the outcome.",
  "little-support": "Most of its decisions were hardly ever made.",
};

/** What an unfair comparison does say, where that is not obvious. */
const MEANINGS: Record<string, string> = {
  "action-constant":
    "The numbers below compare some episodes with others; they do not say what a change would do.",
};

/** Each reason once, in the order of the verdict's codes. */
export function unfair(verdict: Verdict, findings: Finding[]): Unfair[] {
  return verdict.overruled_by.map((code) => {
    const objection = verdict.objections.find((each) => each.code === code);
    const finding = findings.find((each) => each.code === code);
    const message = objection?.message ?? finding?.message ?? "";
    const reason = message === "" ? "" : sentence(message);
    const meaning = MEANINGS[code] ?? finding?.fix ?? "";
    return {
      code,
      title: TITLES[code] ?? "This is not a fair comparison.",
      text: [reason, meaning].filter(Boolean).join(" "),
      isFinding: finding !== undefined,
    };
  });
}
