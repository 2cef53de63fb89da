/**
 * Which policies a goal separates: differences are paired on the same sampled models, and two policies
 * whose paired interval contains zero are not separated. Groups of policies of which no two are
 * separated are joined by a bracket.
 */

import type { GoalComparison, Pair } from "../../lib/types";

/** Whether the paired interval of two policies leaves out zero. */
export function isSeparated(pair: Pair): boolean {
  const isAbove = (pair.low ?? -Infinity) > 0;
  const isBelow = (pair.high ?? Infinity) < 0;
  return isAbove || isBelow;
}

/** The pair of two policies, in either order. */
export function pairOf(pairs: Pair[], one: string, other: string): Pair | undefined {
  return pairs.find(
    (pair) => (pair.a === one && pair.b === other) || (pair.a === other && pair.b === one),
  );
}

/** Whether two policies were compared and are not separated. */
export function isJoined(pairs: Pair[], one: string, other: string): boolean {
  const pair = pairOf(pairs, one, other);
  return pair !== undefined && !isSeparated(pair);
}

/**
 * The largest groups of policies of which no two are separated, as places in `order`.
 *
 * Bron and Kerbosch's algorithm; eight policies need no pivot.
 */
export function joinedGroups(order: string[], pairs: Pair[]): number[][] {
  const neighbours = order.map((one) => {
    const places = order.map((_, place) => place);
    return new Set(places.filter((place) => isJoined(pairs, one, order[place]!)));
  });
  const groups: number[][] = [];

  function extend(group: number[], candidates: number[], done: number[]): void {
    if (candidates.length === 0 && done.length === 0 && group.length > 1) {
      groups.push(group);
    }
    const remaining = [...candidates];
    const visited = [...done];
    for (const place of candidates) {
      const near = neighbours[place]!;
      extend(
        [...group, place],
        remaining.filter((each) => near.has(each)),
        visited.filter((each) => near.has(each)),
      );
      remaining.splice(remaining.indexOf(place), 1);
      visited.push(place);
    }
  }

  extend(
    [],
    order.map((_, place) => place),
    [],
  );
  return groups.map((group) => group.sort((a, b) => a - b));
}

/** Groups in as few lanes as needed, so that no two of a lane overlap. */
export function lanesOf(groups: number[][]): number[][][] {
  const lanes: number[][][] = [];
  for (const group of groups) {
    const free = lanes.find((lane) => lane.every((each) => !overlap(each, group)));
    if (free === undefined) {
      lanes.push([group]);
    } else {
      free.push(group);
    }
  }
  return lanes;
}

function overlap(one: number[], other: number[]): boolean {
  return one[0]! <= other.at(-1)! && other[0]! <= one.at(-1)!;
}

/** The policy with the largest value by a goal; null before any is known. */
export function bestOf(judged: GoalComparison, policies: string[]): string | null {
  let best: string | null = null;
  let most = -Infinity;
  for (const policy of policies) {
    const mean = judged.values[policy]?.mean ?? -Infinity;
    if (mean > most) {
      most = mean;
      best = policy;
    }
  }
  return best;
}
