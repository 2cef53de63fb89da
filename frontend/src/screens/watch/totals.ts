/** Decisions by how they ended, over the days of a monitor. */

import type { Monitor } from "../../lib/types";

export interface Totals {
  decisions: number;
  inTime: number;
  late: number;
  missing: number;
  cancelled: number;
  open: number;
  days: number;
}

export function totalsOf(monitor: Monitor): Totals {
  const total: Totals = {
    decisions: 0,
    inTime: 0,
    late: 0,
    missing: 0,
    cancelled: 0,
    open: 0,
    days: monitor.days.filter((day) => day.actions.length > 0).length,
  };
  for (const counts of monitor.days.flatMap((day) => day.actions)) {
    total.decisions += counts.decisions;
    total.inTime += counts.in_time;
    total.late += counts.late;
    total.missing += counts.missing;
    total.cancelled += counts.cancelled;
    total.open += counts.open;
  }
  return total;
}

/** Decisions whose outcome was due: neither cancelled nor still awaited. */
export function dueOf(counts: { decisions: number; cancelled: number; open: number }): number {
  return counts.decisions - counts.cancelled - counts.open;
}

export interface Missing {
  action: string;
  missing: number;
  due: number;
  rate: number;
}

/** Missing outcomes by action, in the order of the actions. */
export function missingOf(monitor: Monitor, actions: string[]): Missing[] {
  const rows = new Map<string, Missing>();
  for (const counts of monitor.days.flatMap((day) => day.actions)) {
    const row = rows.get(counts.action) ?? { action: counts.action, missing: 0, due: 0, rate: 0 };
    row.missing += counts.missing;
    row.due += dueOf(counts);
    rows.set(counts.action, row);
  }
  const found = [...rows.values()];
  found.forEach((row) => (row.rate = row.due > 0 ? row.missing / row.due : 0));
  return found.sort((a, b) => actions.indexOf(a.action) - actions.indexOf(b.action));
}

/** Standard errors above which a difference is no chance: about one false remark in a thousand. */
const ODD = 3;

export interface Odd {
  action: string;
  /** How many times as often as those of the other actions. */
  times: number;
}

/** The action whose outcomes are missing more often than chance explains, if there is one. */
export function oddMissing(rows: Missing[]): Odd | null {
  const worst = [...rows].sort((a, b) => b.rate - a.rate)[0];
  if (worst === undefined || rows.length < 2) {
    return null;
  }
  const others = rows.filter((row) => row !== worst);
  const missing = others.reduce((sum, row) => sum + row.missing, 0);
  const due = others.reduce((sum, row) => sum + row.due, 0);
  if (due === 0 || worst.due === 0) {
    return null;
  }
  const pooled = (missing + worst.missing) / (due + worst.due);
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / due + 1 / worst.due));
  const isOdd = error > 0 && worst.rate - missing / due > ODD * error;
  return isOdd ? { action: worst.action, times: worst.rate / (missing / due) } : null;
}
