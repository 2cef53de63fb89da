/** Where the world has changed: what followed lately, next to what followed in the log. */

import { listed, pct } from "../../lib/format";
import { labelName } from "../../lib/goal";
import type { ChangedRow } from "../../lib/types";

/** Evidence below this is not shown as a number: any log has some. */
export const LEAST_EVIDENCE = 0.5;

/** Up to so many states and actions there is a grid; above, a list of where it changed most. */
const GRID_STATES = 12;
const GRID_ACTIONS = 6;

export function hasGrid(states: string[], actions: string[]): boolean {
  return states.length <= GRID_STATES && actions.length <= GRID_ACTIONS;
}

/** Rows by state and action. */
export function byPlace(rows: ChangedRow[]): Map<string, ChangedRow> {
  return new Map(rows.map((row) => [placeOf(row.state, row.action), row]));
}

export function placeOf(state: string, action: string): string {
  return JSON.stringify([state, action]);
}

export interface Share {
  next: string;
  lately: number;
  /** Null where the log has no record of this state and action. */
  log: number | null;
}

/** Shares of the given next states. */
export function sharesOf(row: ChangedRow, nexts: string[]): Share[] {
  const total = Object.values(row.log).reduce((sum, records) => sum + records, 0);
  return nexts.map((next) => ({
    next,
    lately: row.lately[next] ?? 0,
    log: total > 0 ? (row.log[next] ?? 0) / total : null,
  }));
}

/** The next state whose share has changed most; null where nothing has followed yet. */
export function largestChange(row: ChangedRow): Share | null {
  const nexts = [...new Set([...Object.keys(row.lately), ...Object.keys(row.log)])];
  const shares = sharesOf(row, nexts);
  const sorted = shares.sort(
    (a, b) => Math.abs(b.lately - (b.log ?? 0)) - Math.abs(a.lately - (a.log ?? 0)),
  );
  return sorted[0] ?? null;
}

/** What changed at one place: "led to cold 60 % of the time lately; in the log it was 12 %". */
export function changeWords(row: ChangedRow): string {
  const share = largestChange(row);
  if (share === null) {
    return "nothing has followed yet";
  }
  const lately = `led to ${labelName(share.next)} ${pct(share.lately)} of the time lately`;
  return share.log === null
    ? `${lately}; the log has no record of it`
    : `${lately}; in the log it was ${pct(share.log)}`;
}

/** All shares of a row in words, for screen readers. */
export function rowWords(row: ChangedRow, nexts: string[]): string {
  const parts = sharesOf(row, nexts)
    .filter((share) => share.lately > 0.005 || (share.log ?? 0) > 0.005)
    .map((share) => `${labelName(share.next)} ${pct(share.lately)}, in the log ${pct(share.log)}`);
  return listed(parts, 12);
}

/** A power of ten in words: "about 1,000 to 1", "10³² to 1". */
export function oddsWords(evidence: number): string {
  if (evidence < 1) {
    return "no odds to speak of";
  }
  if (evidence < 7) {
    return `about ${(10 ** Math.floor(evidence)).toLocaleString("en-US")} to 1`;
  }
  const digits = String(Math.floor(evidence)).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)] ?? "");
  return `10${digits} to 1`;
}
