/** A verdict as rows of intervals and as words. */

import type { Verdict } from "../../lib/types";
import { hidesMeans, isOverruled } from "../../lib/verdict";
import type { IntervalRow } from "../../parts/Interval.svelte";

/** This policy, what was done, and acting at random; no means where the log cannot tell. */
export function rowsOf(verdict: Verdict): IntervalRow[] {
  const hideMean = hidesMeans(verdict);
  const contenders: { key: string; label: string; tone?: string; strong?: boolean }[] = [
    { key: "new", label: "This policy", tone: "var(--accent)", strong: true },
    { key: "logged", label: "What was done" },
    { key: "random", label: "At random" },
  ];
  return contenders.flatMap(({ key, ...looks }) => {
    const value = verdict.values[key];
    const isKnown = value?.mean != null && value.low != null && value.high != null;
    if (!isKnown) {
      return [];
    }
    return [{ ...looks, mean: value.mean!, low: value.low!, high: value.high!, hideMean }];
  });
}

/** What a difference is of, as the rest of a sentence that begins with a number. */
export function ofMeasure(measure: string): string {
  return measure.startsWith("share of time") ? measure.replace("share of", "of the") : measure;
}

/** What screen readers say of a verdict. */
export function wordsOf(verdict: Verdict): string {
  const { logged, random } = verdict.comparisons;
  if (logged === undefined || random === undefined) {
    return "";
  }
  if (isOverruled(verdict)) {
    return `Not a fair comparison. ${against(logged.by_the_log, "what was done")} by the log.`;
  }
  const first = against(logged.verdict, "what was done");
  const second = against(random.verdict, "random").toLowerCase();
  return `${first}, ${second}.`;
}

function against(word: string, reference: string): string {
  if (word === "cannot tell") {
    return `Cannot tell against ${reference}`;
  }
  return `${word === "better" ? "Better" : "Worse"} than ${reference}`;
}
