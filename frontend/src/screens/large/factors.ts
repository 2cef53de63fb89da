/** Actions that are pairs, such as 5 x 5 doses: shown as a small matrix. */

import { unpack } from "../../lib/address.svelte";

export interface Factors {
  rows: string[];
  columns: string[];
  /** Action of each row and column. */
  at: number[][];
}

/** What may be between the two halves of a label. */
const SEPARATORS = [" · ", "·", " x ", " × ", "×", ", ", ",", " / ", "/", "|", ":", "_", "-", " "];

/** The two halves of a label, or null where it is no pair. */
function halves(key: string, separator: string | null): [string, string] | null {
  if (separator === null) {
    const parts = key.startsWith("[") ? unpack<unknown>(key) : null;
    const isPair = Array.isArray(parts) && parts.length === 2;
    return isPair ? [String(parts[0]), String(parts[1])] : null;
  }
  const parts = key.split(separator);
  const [first, second] = parts;
  const isPair = parts.length === 2 && first !== "" && second !== "";
  return isPair ? [first!, second!] : null;
}

/** The matrix of actions that are all pairs of two lists; null where they are not. */
export function factorsOf(actions: string[]): Factors | null {
  for (const separator of [null, ...SEPARATORS]) {
    const found = factorsBy(actions, separator);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

function factorsBy(actions: string[], separator: string | null): Factors | null {
  const pairs = actions.map((action) => halves(action, separator));
  const rows = [...new Set(pairs.map((pair) => pair?.[0]))];
  const columns = [...new Set(pairs.map((pair) => pair?.[1]))];
  const isWhole = rows.length * columns.length === actions.length;
  const isMatrix = pairs.every((pair) => pair !== null) && rows.length > 1 && columns.length > 1;
  if (!isMatrix || !isWhole) {
    return null;
  }
  const at = rows.map((row) => {
    return columns.map((column) => {
      return pairs.findIndex((pair) => pair?.[0] === row && pair[1] === column);
    });
  });
  const isComplete = at.every((row) => row.every((action) => action >= 0));
  return isComplete ? { rows: rows as string[], columns: columns as string[], at } : null;
}
