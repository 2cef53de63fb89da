/** Second opinions: what the episodes of the log say themselves, without sampled models. */

import type { Verdict } from "../../lib/types";

export interface Opinion {
  name: string;
  title: string;
  mean: number | null;
  low: number | null;
  high: number | null;
  /** Interval of the difference to what was done. */
  difference: [low: number, high: number] | null;
  episodes: number | null;
  isReference: boolean;
  usable: boolean;
  whyNot: string;
  assumption: string;
}

const TITLES: Record<string, string> = {
  logged: "What was done",
  "importance sampling": "Importance sampling",
  "doubly robust": "Doubly robust",
};

export function opinionsOf(verdict: Verdict): Opinion[] {
  return Object.entries(verdict.estimates).map(([name, estimate]) => {
    const { low, high } = estimate.difference ?? { low: null, high: null };
    return {
      name,
      title: TITLES[name] ?? name,
      mean: estimate.mean,
      low: estimate.low,
      high: estimate.high,
      difference: low !== null && high !== null ? [low, high] : null,
      episodes: estimate.effective_episodes,
      isReference: name === "logged",
      usable: estimate.usable,
      whyNot: estimate.why_not,
      assumption: estimate.assumption,
    };
  });
}

/** Decimals that fit the size of the estimates: 5.34, 17.1, 268. */
export function digitsOf(opinions: Opinion[]): number {
  const sizes = opinions.map((each) => Math.abs(each.mean ?? 0));
  const largest = Math.max(...sizes, 0);
  if (largest >= 100) {
    return 0;
  }
  return largest >= 10 ? 1 : 2;
}
