/**
 * Which states a list shows, and in which order: pure functions of what is in the address.
 *
 *     o=change & q=hot & only=weak,changed & f={"room":"cold"}
 */

import { type Changes, pack, type Query, unpack } from "../../lib/address.svelte";
import { labelName } from "../../lib/goal";
import type { Counts } from "../../lib/types";
import type { Lines } from "./lines";

export const SORTS = ["visits", "change", "seen", "order"] as const;
export type Sort = (typeof SORTS)[number];

export const FILTERS = ["weak", "changed", "reached"] as const;
export type Filter = (typeof FILTERS)[number];

/** Above this many states there is a search, an order and filters. */
const MANY = 30;

export function isMany(states: number): boolean {
  return states > MANY;
}

/** Records of the likeliest action below which it was seen rarely. */
export const FEW = 5;

/** Total variation from which a state has changed. */
export const CHANGED = 0.05;

/** Share of time from which a state is reached. */
const REACHED = 1e-9;

export interface Choice {
  sort: Sort;
  text: string;
  only: Filter[];
  /** Wanted values of fields, by name. */
  facets: Record<string, string>;
}

function isOneOf<T extends string>(values: readonly T[], text: string): text is T {
  return values.some((value) => value === text);
}

/** The choice of an address. */
export function choiceOf(query: Query, usual: Sort): Choice {
  const sort = query.o ?? "";
  const facets = unpack<Record<string, string>>(query.f) ?? {};
  const isPlain = typeof facets === "object" && !Array.isArray(facets);
  return {
    sort: isOneOf(SORTS, sort) ? sort : usual,
    text: query.q ?? "",
    only: (query.only ?? "").split(",").filter((name) => isOneOf(FILTERS, name)),
    facets: isPlain ? facets : {},
  };
}

/** A choice as changes of the address; what is usual is left out. */
export function withChoice(choice: Choice, usual: Sort): Changes {
  const hasFacets = Object.keys(choice.facets).length > 0;
  return {
    o: choice.sort === usual ? null : choice.sort,
    q: choice.text === "" ? null : choice.text,
    only: choice.only.length === 0 ? null : choice.only.join(","),
    f: hasFacets ? pack(choice.facets) : null,
  };
}

const searched = new WeakMap<Counts, string[]>();

/** Names of all states in small letters. */
function searchedNames(counts: Counts): string[] {
  let names = searched.get(counts);
  if (names === undefined) {
    names = counts.states.map((state) => `${labelName(state.key)} ${state.key}`.toLowerCase());
    searched.set(counts, names);
  }
  return names;
}

/** Places of the states that are shown, in their order. States in which an episode ends decide nothing. */
export function listOf(counts: Counts, lines: Lines, choice: Choice): number[] {
  const names = searchedNames(counts);
  const words = choice.text.trim().toLowerCase();
  const facets = facetTests(counts, choice.facets);
  const only = new Set(choice.only);

  const shown: number[] = [];
  counts.states.forEach((state, place) => {
    const isLeftOut =
      state.terminal ||
      (words !== "" && !names[place]!.includes(words)) ||
      (only.has("weak") && !lines.weak.has(place)) ||
      (only.has("changed") && lines.change[place]! <= CHANGED) ||
      (only.has("reached") && lines.visits !== null && lines.visits[place]! < REACHED) ||
      !facets.every((test) => test(place));
    if (!isLeftOut) {
      shown.push(place);
    }
  });
  return sorted(shown, lines, choice.sort);
}

/** Tests of states by the wanted values of fields; fields that do not exist are of no account. */
function facetTests(counts: Counts, facets: Record<string, string>): ((place: number) => boolean)[] {
  return Object.entries(facets).flatMap(([name, value]) => {
    const field = counts.fields.find((each) => each.name === name);
    if (field === undefined) {
      return [];
    }
    const wanted = field.values.indexOf(value);
    return [(place: number) => field.of_state[place] === wanted];
  });
}

/** Places in the wanted order; equals stay in the order of the log. */
function sorted(places: number[], lines: Lines, sort: Sort): number[] {
  const { visits, change, seen } = lines;
  if (sort === "visits" && visits !== null) {
    return places.sort((one, other) => visits[other]! - visits[one]!);
  }
  if (sort === "change") {
    return places.sort((one, other) => change[other]! - change[one]!);
  }
  if (sort === "seen") {
    return places.sort((one, other) => seen[one]! - seen[other]!);
  }
  return places;
}

/** States that hold most of the visits: how many, of the most visited, for a share of the time. */
export function holding(visits: ArrayLike<number>, share = 0.8): number {
  const ranked = Array.from(visits).sort((one, other) => other - one);
  const total = ranked.reduce((sum, each) => sum + each, 0);
  let held = 0;
  let number = 0;
  while (number < ranked.length && held < share * total) {
    held += ranked[number]!;
    number += 1;
  }
  return number;
}
