/** Roles of columns: what a mapping can say about each, and how to change it. */

import type { Mapping } from "../../lib/types";

/** Members of a mapping that hold several columns. */
const LISTS = ["state", "action", "next_state", "features", "next_features"] as const;

/** Members of a mapping that hold one column. */
const SINGLES = [
  "episode",
  "time",
  "reward",
  "outcome",
  "weight",
  "count",
  "task",
  "age",
  "propensity",
] as const;

type ListRole = (typeof LISTS)[number];
type SingleRole = (typeof SINGLES)[number];
export type Role = ListRole | SingleRole;

/** All roles in the order in which columns are shown, so that a row reads like a sentence. */
export const ROLES: Role[] = [
  "episode",
  "time",
  "state",
  "features",
  "action",
  "next_state",
  "next_features",
  "outcome",
  "reward",
  "weight",
  "count",
  "task",
  "age",
  "propensity",
];

interface RoleWords {
  name: string;
  /** What such a column holds, for a tooltip. */
  hint: string;
}

export const ROLE_WORDS: Record<Role, RoleWords> = {
  state: { name: "State", hint: "How things stood when the decision was made" },
  action: { name: "Action", hint: "What was decided" },
  next_state: { name: "Next state", hint: "How things stood after the decision" },
  episode: { name: "Episode", hint: "Which rows belong together, such as a day or a patient" },
  time: { name: "Time", hint: "The order of the rows of an episode" },
  reward: { name: "Reward", hint: "A number that a goal may maximise" },
  outcome: { name: "Outcome", hint: "What came of a decision that no other one follows" },
  weight: { name: "Weight", hint: "How much a row counts" },
  count: { name: "Count", hint: "How many records a row stands for" },
  task: { name: "Task", hint: "The past task that a row belongs to" },
  age: { name: "Age", hint: "How old a row is: older rows lose weight" },
  propensity: { name: "Propensity", hint: "The probability with which the action was chosen" },
  features: { name: "Feature", hint: "A raw value from which states are learned" },
  next_features: { name: "Next feature", hint: "The value of a feature after the decision" },
};

/** Roles as the select lists them. */
export const ROLE_GROUPS: { title: string; roles: Role[] }[] = [
  { title: "The decision", roles: ["state", "action", "next_state"] },
  { title: "Which row follows which", roles: ["episode", "time"] },
  { title: "What came of it", roles: ["reward", "outcome"] },
  { title: "How much a row counts", roles: ["weight", "count", "age"] },
  { title: "For evaluations", roles: ["task", "propensity"] },
  { title: "States learned from raw values", roles: ["features", "next_features"] },
];

function isList(role: Role): role is ListRole {
  return LISTS.some((each) => each === role);
}

/** Columns that a mapping gives a role. */
export function columnsOf(mapping: Mapping, role: Role): string[] {
  if (isList(role)) {
    return mapping[role] ?? [];
  }
  const column = mapping[role];
  return column === null || column === undefined ? [] : [column];
}

/** Roles of a column; more than one only if a link or a saved mapping says so. */
export function rolesOf(mapping: Mapping, column: string): Role[] {
  return ROLES.filter((role) => columnsOf(mapping, role).includes(column));
}

/** A mapping in which a column has no role. */
function without(mapping: Mapping, column: string): Mapping {
  const next = { ...mapping };
  for (const role of LISTS) {
    next[role] = columnsOf(mapping, role).filter((each) => each !== column);
  }
  for (const role of SINGLES) {
    if (mapping[role] === column) {
      next[role] = null;
    }
  }
  return next;
}

/** A mapping in which a column has one role, or none; a role of one column leaves the other one. */
export function withRole(mapping: Mapping, column: string, role: Role | null): Mapping {
  const next = without(mapping, column);
  if (role !== null && isList(role)) {
    next[role] = [...columnsOf(next, role), column];
  } else if (role !== null) {
    next[role] = column;
  }
  return tidied(next, mapping);
}

/**
 * A mapping with another column at a place that a problem points at, such as `/state/0` or `/time`.
 *
 * A pointer to anything else changes nothing.
 */
export function withColumnAt(mapping: Mapping, pointer: string, column: string): Mapping {
  const [, role, place] = pointer.split("/");
  const known = ROLES.find((each) => each === role);
  if (known === undefined) {
    return mapping;
  }
  const next = without(mapping, column);
  if (isList(known)) {
    const replaced = columnsOf(mapping, known).map((each, index) =>
      String(index) === place ? column : each,
    );
    next[known] = [...new Set(replaced)];
  } else {
    next[known] = column;
  }
  return tidied(next, mapping);
}

/** Drops what the changed roles leave without meaning, so that nobody has to look for it. */
function tidied(next: Mapping, before: Mapping): Mapping {
  const tidy = { ...next };

  // Bins belong to columns of labels.
  if (typeof next.bins === "object") {
    const cut = ["state", "action", "outcome", "reward"] as const;
    const columns = cut.flatMap((role) => columnsOf(next, role));
    const kept = Object.entries(next.bins).filter(
      ([column]) => column === "*" || columns.includes(column),
    );
    tidy.bins = Object.fromEntries(kept);
  }

  // Terminal states are states of the columns that were chosen when they were declared.
  const stateRoles = ["state", "features"] as const;
  const hasOtherStates = stateRoles.some(
    (role) => columnsOf(next, role).join("\n") !== columnsOf(before, role).join("\n"),
  );
  if (hasOtherStates) {
    tidy.terminal = [];
  }

  // A gap is one between records that follow each other; a half-life is one of an age.
  const following = [...columnsOf(next, "next_state"), ...columnsOf(next, "next_features")];
  if (following.length > 0 || columnsOf(next, "time").length === 0) {
    tidy.max_gap = null;
  }
  if (columnsOf(next, "age").length === 0) {
    tidy.half_life = null;
  }
  return tidy;
}

/** Columns of a table with those that have a role first, in the order of roles. */
export function columnOrder(columns: string[], mapping: Mapping): string[] {
  const used = ROLES.flatMap((role) => columnsOf(mapping, role));
  const known = used.filter((column) => columns.includes(column));
  return [...new Set([...known, ...columns])];
}
