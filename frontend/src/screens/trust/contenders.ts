/** How well each policy would do: the contenders, in a fixed order, with names for people. */

import { baseOf, methodName } from "../../lib/methods";
import type { Verdict } from "../../lib/types";
import { hidesMeans, isOverruled, optimumNote } from "../../lib/verdict";
import type { IntervalRow } from "../../parts/Interval.svelte";

const NAMES: Record<string, string> = {
  new: "This policy",
  logged: "What was done",
  random: "Acting at random",
  optimum: "The best possible",
};

/** First the policy and its references, then other methods and rules, last the bound of all. */
const FIRST = ["new", "logged", "random"];
const LAST = ["optimum"];

/**
 * Names of the contenders in the order in which they are shown.
 *
 * @param own - the policy's own method, which is the policy again
 */
export function contendersOf(verdict: Verdict, own: string): string[] {
  const names = Object.keys(verdict.values).filter((name) => name !== baseOf(own));
  const others = names.filter((name) => !FIRST.includes(name) && !LAST.includes(name));
  const first = FIRST.filter((name) => names.includes(name));
  const last = LAST.filter((name) => names.includes(name));
  return [...first, ...others, ...last];
}

/** Rows of a picture of the values. */
export function valueRows(verdict: Verdict, own: string): IntervalRow[] {
  const hideMean = hidesMeans(verdict);
  return contendersOf(verdict, own).map((name) => {
    const value = verdict.values[name];
    return {
      label: NAMES[name] ?? methodName(name),
      note: noteOf(verdict, name),
      mean: value?.mean ?? 0,
      low: value?.low ?? 0,
      high: value?.high ?? 0,
      strong: name === "new",
      tone: toneOf(name),
      hideMean,
    };
  });
}

/** Methods that are better than the policy by the log; none where that is not a fair comparison. */
export function betterAlternatives(verdict: Verdict): string[] {
  if (isOverruled(verdict)) {
    return [];
  }
  const found = Object.entries(verdict.alternatives);
  return found.filter(([, comparison]) => comparison.verdict === "worse").map(([name]) => name);
}

function noteOf(verdict: Verdict, name: string): string | undefined {
  if (name === "optimum") {
    return optimumNote(verdict.samples);
  }
  return betterAlternatives(verdict).includes(name) ? "better, by the log" : undefined;
}

function toneOf(name: string): string | undefined {
  if (name === "new") {
    return "var(--accent)";
  }
  return name === "optimum" ? "var(--good)" : undefined;
}
