/** Goals side by side: every part that a goal can have, as a line of text. */

import { goalKey, labelName, plainGoal } from "../../lib/goal";
import type { Goal } from "../../lib/types";

/** Goals, each once, in their order. */
export function distinctGoals(goals: Goal[]): Goal[] {
  const known = new Map<string, Goal>();
  for (const goal of goals) {
    const key = goalKey(goal);
    if (!known.has(key)) {
      known.set(key, goal);
    }
  }
  return [...known.values()];
}

/** The parts of a goal, by their names in words. */
export function partsOf(given: Goal): Map<string, string> {
  const goal = plainGoal(given);
  const parts = new Map<string, string>();
  for (const [state, weight] of Object.entries(goal.prefer ?? {})) {
    parts.set(`Be in ${labelName(state)}`, String(weight));
  }
  for (const [field, weights] of Object.entries(goal.targets ?? {})) {
    for (const [value, weight] of Object.entries(weights)) {
      parts.set(`Have ${field} ${labelName(value)}`, String(weight));
    }
  }
  for (const [action, weight] of Object.entries(goal.prefer_actions ?? {})) {
    parts.set(`Preferably do ${labelName(action)}`, String(weight));
  }
  for (const [state, action] of goal.forbid ?? []) {
    const place = state === null ? "" : ` in ${labelName(state)}`;
    parts.set(`Do ${labelName(action)}${place}`, "never");
  }

  // Parts of which there is one.
  const single: [name: string, value: unknown][] = [
    ["Collect the reward of the log", goal.maximise],
    ["Reward of each state", goal.reward],
    ["Table of probabilities", goal.table],
    ["Temperature", goal.temperature],
    ["Smallest probability of a next state", goal.floor],
    ["Smallest probability of an action", goal.action_floor],
  ];
  for (const [name, value] of single) {
    if (value !== undefined && value !== null) {
      parts.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
  }
  return parts;
}

export interface PartRow {
  name: string;
  /** One text for each goal; empty where a goal does not have the part. */
  texts: string[];
}

/** The parts in which goals differ, and the names of those that are equal in all. */
export function goalDifferences(goals: Goal[]): { rows: PartRow[]; equal: string[] } {
  const parts = goals.map(partsOf);
  const names = [...new Set(parts.flatMap((each) => [...each.keys()]))];
  const rows: PartRow[] = [];
  const equal: string[] = [];
  for (const name of names) {
    const texts = parts.map((each) => each.get(name) ?? "");
    if (texts.every((text) => text === texts[0])) {
      equal.push(`${name}: ${texts[0]}`);
    } else {
      rows.push({ name, texts });
    }
  }
  return { rows, equal };
}
