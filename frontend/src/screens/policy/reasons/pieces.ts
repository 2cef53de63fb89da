/**
 * What a probability is made of, as the drawer shows it: pieces of a bar, lines of a table that add
 * up, ribbons.
 */

import { addingUp } from "../../../lib/evidence";
import type { EvidenceRow, Explanation, Reason } from "../../../lib/types";

/** Parts that evidence and prior make up; other methods have others. */
const RECORDS = "records";

/** A line of the table: what carries a part of a probability. */
export interface Line {
  /** Key of the next state; null for what is no state, such as the prior. */
  next: string | null;
  name: string;
  records: number | null;
  /** Similarity of each record. */
  similarity: number | null;
  /** Part of the probability, rounded such that all lines add up. */
  carries: number;
  rows: EvidenceRow[];
}

export interface Parts {
  lines: Line[];
  /** Next states that were put together in one line. */
  others: number;
  digits: number;
  /** The probability as the lines add up to it. */
  total: number;
  records: number;
}

/**
 * The table of a reason whose parts add up.
 *
 * @param most - next states with a line of their own; the others share one
 */
export function partsOf(reason: Reason, most: number): Parts {
  const records = reason.evidence.reduce((total, each) => total + each.records, 0);
  const hasOthers = reason.evidence.length > most;
  const shown = hasOthers ? reason.evidence.slice(0, most - 1) : reason.evidence;
  const hidden = reason.evidence.slice(shown.length);

  const lines: Line[] = shown.map((each) => ({
    next: each.next_state,
    name: each.next_state,
    records: each.records,
    similarity: each.records > 0 ? each.similarity / each.records : 0,
    carries: each.share,
    rows: each.rows,
  }));
  if (hidden.length > 0) {
    lines.push({
      next: null,
      name: `${hidden.length} other states`,
      records: hidden.reduce((total, each) => total + each.records, 0),
      similarity: null,
      carries: hidden.reduce((total, each) => total + each.share, 0),
      rows: [],
    });
  }
  for (const [name, share] of Object.entries(reason.parts)) {
    if (name !== RECORDS) {
      lines.push({ next: null, name, records: null, similarity: null, carries: share ?? 0, rows: [] });
    }
  }

  const rounded = addingUp(lines.map((line) => line.carries));
  const carried = lines.map((line, index) => ({ ...line, carries: rounded.parts[index] ?? 0 }));
  return {
    lines: carried,
    others: hidden.length,
    digits: rounded.digits,
    total: rounded.total,
    records,
  };
}

/** A piece of the whole probability of a state. */
export interface Piece {
  action: string;
  /** Key of a next state, or the name of a part such as "prior". */
  name: string;
  isState: boolean;
  share: number;
}

/** All of the probability of a state, in the order of the actions; slivers are left out. */
export function piecesOf(explanation: Explanation, actions: string[], least = 0.001): Piece[] {
  return actions.flatMap((action) => {
    const reason = explanation.actions[action];
    if (reason === undefined) {
      return [];
    }
    const pieces: Piece[] = reason.evidence.map((each) => {
      return { action, name: each.next_state, isState: true, share: each.share };
    });
    for (const [name, share] of Object.entries(reason.parts)) {
      if (name !== RECORDS) {
        pieces.push({ action, name, isState: false, share: share ?? 0 });
      }
    }
    return pieces.filter((piece) => piece.share >= least);
  });
}

export interface Ribbon {
  action: string;
  next: string;
  records: number;
}

/** Name of the actions that are put together. */
export const OTHER_ACTIONS = "other actions";

/**
 * Ribbons of a state: what each action led to.
 *
 * @param chosen - the action that is looked at: it always has a ribbon of its own
 * @param most - actions with ribbons of their own: those with most records
 */
export function ribbonsOf(explanation: Explanation, chosen: string, most: number): Ribbon[] {
  const all = Object.entries(explanation.actions).flatMap(([action, reason]) => {
    return reason.evidence.map((each) => ({ action, next: each.next_state, records: each.records }));
  });
  return withFewActions(all, chosen, most);
}

/** Ribbons with all but the most frequent actions put together. */
export function withFewActions(ribbons: Ribbon[], chosen: string, most: number): Ribbon[] {
  const totals = new Map<string, number>();
  for (const { action, records } of ribbons) {
    totals.set(action, (totals.get(action) ?? 0) + records);
  }
  if (totals.size <= most) {
    return ribbons;
  }
  const others = [...totals.keys()].filter((action) => action !== chosen);
  others.sort((one, other) => (totals.get(other) ?? 0) - (totals.get(one) ?? 0));
  const named = new Set([chosen, ...others.slice(0, most - 2)]);

  const grouped = new Map<string, Ribbon>();
  for (const ribbon of ribbons) {
    const action = named.has(ribbon.action) ? ribbon.action : OTHER_ACTIONS;
    const key = JSON.stringify([action, ribbon.next]);
    const known = grouped.get(key);
    const records = (known?.records ?? 0) + ribbon.records;
    grouped.set(key, { action, next: ribbon.next, records });
  }
  return [...grouped.values()];
}
