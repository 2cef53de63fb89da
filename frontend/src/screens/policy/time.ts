/** Where the time goes, as rows of a list. */

export interface TimeRow {
  /** Key of a state; the last row of a long list stands for all others. */
  name: string;
  before: number;
  after: number;
  /** How much the state is wanted, from 0 to 1. */
  wanted: number;
}

/** A state that is wanted less than this part of the most wanted one is shown as not wanted. */
const LEAST_WANTED = 0.02;

/**
 * Shares of time by state; of many states those with most time, and one row for all others.
 *
 * @param ends - states in which episodes end; they take no time and are left out
 * @param most - states that are shown
 */
export function timeRows(
  states: string[],
  visits: { before: Float64Array; after: Float64Array },
  ideal: Float64Array | null,
  ends: ReadonlySet<string> = new Set(),
  most = 12,
): TimeRow[] {
  const largest = ideal === null ? 0 : ideal.reduce((a, b) => Math.max(a, b), 0);
  const all = states.map((name, place) => {
    const part = largest > 0 ? (ideal?.[place] ?? 0) / largest : 0;
    return {
      name,
      before: visits.before[place] ?? 0,
      after: visits.after[place] ?? 0,
      wanted: part >= LEAST_WANTED ? part : 0,
    };
  });
  const rows = all.filter((row) => !ends.has(row.name) || row.before > 0 || row.after > 0);
  if (rows.length <= most) {
    return rows;
  }

  // The states with most time, in the order of all; the others together.
  const largestTime = (row: TimeRow) => Math.max(row.before, row.after);
  const byTime = [...rows].sort((one, other) => largestTime(other) - largestTime(one));
  const shown = new Set(byTime.slice(0, most - 1));
  const others = rows.filter((row) => !shown.has(row));
  const sum = (pick: (row: TimeRow) => number) => {
    return others.reduce((total, row) => total + pick(row), 0);
  };
  return [
    ...rows.filter((row) => shown.has(row)),
    {
      name: `${others.length} others`,
      before: sum((row) => row.before),
      after: sum((row) => row.after),
      wanted: 0,
    },
  ];
}
