/** Ask again with more in the state: which columns can be added, and what came of it. */

import { counted, int } from "../../lib/format";
import type { ColumnView, Mapping, ProbeItem, Project } from "../../lib/types";

/** Different values of text above which a column says who it is and not how things are. */
const MOST_LABELS = 12;

/** Bins of a numeric column, by quantiles: enough to see a trend, with records in each. */
const BINS = 3;

/** Columns at a time that the service takes. */
export const MOST_COLUMNS = 20;

/** Columns of a log that have no role in its mapping. */
export function freeColumns(project: Project): ColumnView[] {
  const used = usedColumns(project.mapping ?? {});
  return project.columns.filter((column) => !used.has(column.name) && column.distinct !== 1);
}

function usedColumns(mapping: Mapping): Set<string> {
  const { state, action, next_state, features, ...others } = mapping;
  const single = Object.values(others).filter((value) => typeof value === "string");
  const names = [state, action, next_state, features, single].flat();
  return new Set(names.filter((name) => name !== undefined && name !== null));
}

/**
 * Whether a column is chosen before anybody chooses: few values, or numbers.
 *
 * @param rows - of the log; numbers that are different in each of them only count the rows
 */
export function isSuggested(column: ColumnView, rows: number | null): boolean {
  const distinct = column.distinct ?? Infinity;
  const isFew = distinct <= MOST_LABELS;
  const isMeasure = column.type === "number" && distinct !== rows;
  return isFew || isMeasure;
}

/** How numeric columns with many values are cut. */
export function binsFor(columns: ColumnView[]): Record<string, number> {
  const isLong = (column: ColumnView) => {
    return column.type === "number" && (column.distinct === null || column.distinct > MOST_LABELS);
  };
  return Object.fromEntries(columns.filter(isLong).map((column) => [column.name, BINS]));
}

/** What a probe says of the advice. */
export function adviceWords(item: ProbeItem): string {
  if (item.compared === 0) {
    return "no state has records enough";
  }
  const states = counted(item.compared, "state");
  if (item.turned === 0) {
    return `holds in all of ${states}`;
  }
  return `turns around in ${int(item.turned)} of ${states}`;
}
