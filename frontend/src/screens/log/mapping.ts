/**
 * A mapping of columns under edit: in the address, next to the guess and the saved one.
 *
 * Mappings are compared and written without the members that say nothing, so equal ones are equal
 * as text.
 */

import { pack, unpack } from "../../lib/address.svelte";
import type { Guess, Mapping, Project, Validation } from "../../lib/types";
import { columnsOf } from "./roles";

/** Defaults of the service that mean the same as a missing member. */
const DEFAULTS: Mapping = { max_states: 200, text_labels: true };

/** The roles that the library guessed, with bins for numbers of many values. */
export function guessedMapping(guess: Guess): Mapping {
  return compact({
    state: guess.state,
    action: guess.action,
    next_state: guess.next_state,
    episode: guess.episode,
    time: guess.time,
    outcome: guess.outcome,
    bins: Object.fromEntries(guess.binned.map((column) => [column, "auto" as const])),
  });
}

/** A mapping without members that say nothing, in alphabetical order. */
export function compact(mapping: Mapping): Mapping {
  const members = Object.entries(mapping).filter(([name, value]) => {
    const isDefault = value === DEFAULTS[name as keyof Mapping];
    return !isDefault && !isNothing(value);
  });
  members.sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members) as Mapping;
}

function isNothing(value: unknown): boolean {
  if (value === null || value === undefined) {
    return true;
  }
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** A mapping as text: equal mappings have equal texts. */
export function textOf(mapping: Mapping): string {
  return pack(compact(mapping));
}

export function isSame(one: Mapping, other: Mapping): boolean {
  return textOf(one) === textOf(other);
}

/** The mapping that a log has before anything is edited: the saved one, or the guess. */
export function startingMapping(project: Project): Mapping {
  return project.mapping ?? guessedMapping(project.guess);
}

/** The mapping of an address; anything that is none is the one that the log starts with. */
export function mappingOf(text: string | undefined, project: Project): Mapping {
  const given = unpack<Mapping>(text);
  const isMapping = typeof given === "object" && given !== null && !Array.isArray(given);
  return compact(isMapping ? given : startingMapping(project));
}

/** How a mapping is written in the address: not at all where the log starts with it. */
export function inAddress(mapping: Mapping, project: Project): string | null {
  return isSame(mapping, startingMapping(project)) ? null : textOf(mapping);
}

/** A mapping with the members of a remedy. */
export function patched(mapping: Mapping, patch: Record<string, unknown>): Mapping {
  return compact({ ...mapping, ...(patch as Mapping) });
}

/** A mapping in which a state is terminal, or is not; states are those of the last reading. */
export function withTerminal(
  mapping: Mapping,
  states: Validation["states"],
  key: string,
  isTerminal: boolean,
): Mapping {
  const others = states.filter((state) => state.terminal && state.key !== key);
  const keys = others.map((state) => state.key);
  return { ...mapping, terminal: isTerminal ? [...keys, key] : keys };
}

/** A length of time as people write it: a number, a text such as "36h", or nothing. */
export function spanOf(text: string): number | string | null {
  const trimmed = text.trim();
  if (trimmed === "") {
    return null;
  }
  const number = Number(trimmed);
  return Number.isFinite(number) ? number : trimmed;
}

/** Where the next state of a row comes from. */
export type Following = "column" | "outcome" | "record" | "nothing";

export function followingOf(mapping: Mapping): Following {
  const hasNext =
    columnsOf(mapping, "next_state").length + columnsOf(mapping, "next_features").length > 0;
  if (hasNext) {
    return "column";
  }
  const hasOrder = columnsOf(mapping, "time").length + columnsOf(mapping, "episode").length > 0;
  const hasReward = columnsOf(mapping, "reward").length > 0;
  if (columnsOf(mapping, "outcome").length > 0 || (hasReward && !hasOrder)) {
    return "outcome";
  }
  return columnsOf(mapping, "time").length > 0 ? "record" : "nothing";
}

/** What a mapping lacks before a log can be read by it, in words; null if nothing. */
export function lackOf(mapping: Mapping): string | null {
  const hasState = columnsOf(mapping, "state").length + columnsOf(mapping, "features").length > 0;
  if (!hasState) {
    return "no column holds the state";
  }
  if (columnsOf(mapping, "action").length === 0) {
    return "no column holds the action";
  }
  if (followingOf(mapping) === "nothing") {
    return "no column says which row follows which";
  }
  return null;
}
