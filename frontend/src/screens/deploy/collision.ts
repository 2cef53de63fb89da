/** Two changes of the same settings, side by side. */

import type { PolicySettings } from "../../lib/types";
import { durationWords } from "./duration";
import type { Stale } from "./model.svelte";

export interface Row {
  setting: string;
  seen: string;
  theirs: string;
  /** Null where the reader did not change it. */
  mine: string | null;
}

const NAMES: Record<keyof PolicySettings, string> = {
  mode: "Mode",
  version: "Version",
  outcome_due_s: "Outcome due within",
  learn: "Learn from outcomes",
  learn_delay: "Learn when",
  on_unseen: "Unknown state",
  floor: "Never less than",
  on_alarm: "On an alarm",
  labels: "New labels",
  retention_days: "Days kept",
  context_days: "Days of contexts",
};

/** A value of a setting in words. */
function shown(name: keyof PolicySettings, value: unknown): string {
  if (name === "outcome_due_s" && typeof value === "number") {
    return durationWords(value);
  }
  if (name === "version") {
    return value === null ? "none" : `v${String(value)}`;
  }
  if (typeof value === "boolean") {
    return value ? "yes" : "no";
  }
  return String(value).replace(/^action:/, "");
}

/** The settings that either side changed. */
export function collision({ mine, seen, theirs }: Stale): Row[] {
  const rows: Row[] = [];
  for (const name of Object.keys(NAMES) as (keyof PolicySettings)[]) {
    const isMine = mine[name] !== undefined && mine[name] !== seen[name];
    const isTheirs = theirs.settings[name] !== seen[name];
    if (isMine || isTheirs) {
      rows.push({
        setting: NAMES[name],
        seen: shown(name, seen[name]),
        theirs: shown(name, theirs.settings[name]),
        mine: isMine ? shown(name, mine[name]) : null,
      });
    }
  }
  return rows;
}
