/** The rows of *State by state*: support of a state, and its likeliest action. */

import type { Preview } from "../../lib/types";

export interface StateRow {
  state: string;
  records: number;
  /** Total similarity of its records to the goal. */
  similarity: number;
  /** Share of time that the policy spends there. */
  time: number | null;
  action: string;
  p: number;
  /** 90 % range of the probability, where the method has one. */
  range: [low: number, high: number] | null;
  isWeak: boolean;
}

/** A row for every state in which something is decided: none where episodes end. */
export function stateRows(policy: Preview): StateRow[] {
  const { rule, support, ranges, visits } = policy;
  const rows = rule.states.map((state, index) => {
    const probabilities = rule.p[index] ?? [];
    const best = probabilities.indexOf(Math.max(...probabilities));
    const low = ranges?.low[index]?.[best];
    const high = ranges?.high[index]?.[best];
    const isKnown = low !== undefined && high !== undefined;
    return {
      state,
      records: support?.records[index] ?? 0,
      similarity: support?.similarity[index] ?? 0,
      time: visits?.after[index] ?? null,
      action: rule.actions[best] ?? "",
      p: probabilities[best] ?? 0,
      range: isKnown ? ([low, high] as [number, number]) : null,
      isWeak: policy.weak.includes(index),
    };
  });
  return rows.filter((row) => row.records > 0 || row.isWeak);
}
