/** Bins of a numeric column: none, a number of equal frequency, "auto", or edges. */

import type { Mapping } from "../../lib/types";
import { followingOf } from "./mapping";
import { columnsOf } from "./roles";

export type ColumnBins = number | "auto" | number[] | null;

/** An edge snaps to steps of at least this share of the axis, rounded to a power of ten. */
const FINEST = 1 / 400;

/** The bins of a column; "auto" for the whole mapping holds for every state column of numbers. */
export function binsOf(mapping: Mapping, column: string): ColumnBins {
  const bins = mapping.bins ?? {};
  if (bins === "auto") {
    return "auto";
  }
  return bins[column] ?? bins["*"] ?? null;
}

/**
 * Whether the values of a column are cut although nobody said so: rewards of one-shot decisions are
 * their outcomes, and many of them are cut. `edges` are those that the service found.
 */
export function isCutAnyway(mapping: Mapping, column: string, edges: number[]): boolean {
  const isOneShot = followingOf(mapping) === "outcome" && columnsOf(mapping, "outcome").length === 0;
  return isOneShot && columnsOf(mapping, "reward").includes(column) && edges.length > 0;
}

/** A mapping with other bins of a column; "auto" for all stood for the `numeric` columns. */
export function withBins(
  mapping: Mapping,
  column: string,
  given: ColumnBins,
  numeric: string[],
): Mapping {
  const bins: Record<string, number | "auto" | number[]> = {};
  for (const each of numeric) {
    const known = binsOf(mapping, each);
    if (known !== null) {
      bins[each] = known;
    }
  }
  if (given === null) {
    delete bins[column];
  } else {
    bins[column] = given;
  }
  return { ...mapping, bins };
}

/** The step of an axis that an edge snaps to. */
export function stepOf(low: number, high: number): number {
  const finest = (high - low) * FINEST;
  return finest > 0 ? 10 ** Math.floor(Math.log10(finest)) : 1;
}

/** A number that has no more digits than its axis needs. */
function snapped(value: number, step: number): number {
  return Number((Math.round(value / step) * step).toPrecision(12));
}

/** Edges with one moved, which stays between its neighbours. */
export function movedEdge(
  edges: number[],
  index: number,
  value: number,
  low: number,
  high: number,
): number[] {
  const step = stepOf(low, high);
  const least = (edges[index - 1] ?? low) + step;
  const largest = (edges[index + 1] ?? high) - step;
  const wanted = snapped(value, step);
  const allowed = least > largest ? (edges[index] ?? wanted) : clamped(wanted, least, largest);
  return edges.map((edge, place) => (place === index ? snappedInside(allowed, step) : edge));
}

function clamped(value: number, least: number, largest: number): number {
  return Math.max(least, Math.min(largest, value));
}

/** A bound of neighbours that are no round numbers themselves stays as it is. */
function snappedInside(value: number, step: number): number {
  return Number.isInteger(value / step) ? snapped(value, step) : Number(value.toPrecision(12));
}

/** Edges with one more: in the middle of the widest bin. */
export function withEdge(edges: number[], low: number, high: number): number[] {
  const ends = [low, ...edges, high];
  let widest = 0;
  for (let index = 1; index < ends.length - 1; index += 1) {
    if (widthAt(ends, index) > widthAt(ends, widest)) {
      widest = index;
    }
  }
  const middle = (ends[widest] ?? low) + widthAt(ends, widest) / 2;
  const added = snapped(middle, stepOf(low, high));
  return [...new Set([...edges, added])].sort((one, other) => one - other);
}

function widthAt(ends: number[], index: number): number {
  return (ends[index + 1] ?? 0) - (ends[index] ?? 0);
}

export function withoutEdge(edges: number[], index: number): number[] {
  return edges.filter((_, place) => place !== index);
}

/** Edges as people write them, "18, 21.5, 24", in ascending order; null if that is no list. */
export function parseEdges(text: string): number[] | null {
  const parts = text.split(/[,;\s]+/).filter((part) => part !== "");
  const numbers = parts.map((part) => Number(part.replace("−", "-")));
  if (numbers.length === 0 || !numbers.every(Number.isFinite)) {
    return null;
  }
  return [...new Set(numbers)].sort((one, other) => one - other);
}

/** Edges with no more digits than a reader can use. */
export function shortEdges(edges: number[]): number[] {
  return edges.map((edge) => Number(edge.toPrecision(6)));
}
