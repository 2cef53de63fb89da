/** What the service sends and takes, by the names that the pages use. */

export interface Page<T> {
  items: T[];
  next: string | null;
}

export type Severity = "note" | "warn" | "blocks-verdict";
export type VerdictWord = "better" | "worse" | "cannot tell";
export type Range = [low: number, high: number];

export interface FindingSummary {
  code: string;
  severity: Severity;
  message: string;
}

export interface ProjectSummary {
  id: string;
  name: string;
  kind: string;
  rows: number | null;
  states: number | null;
  actions: number | null;
  goal: string | null;
  verdict: VerdictWord | null;
  gain: Range | null;
  deployed: { policy: string; mode: string; alarm: boolean } | null;
  changed: string;
  findings: FindingSummary[];
}

export interface ColumnView {
  name: string;
  type: "text" | "number" | "time" | "boolean";
  distinct: number;
  missing: number;
  top: [value: string, count: number][];
  histogram: { edges: number[]; counts: number[] } | null;
  min: number | string | null;
  max: number | string | null;
}

export interface Guess {
  state: string[];
  action: string[];
  next_state: string[];
  episode: string | null;
  time: string | null;
  confidence: number;
  why: string;
}

/** What the columns of a log mean; the members of `Columns.of`. */
export interface Mapping {
  state: string[];
  action: string[];
  next_state?: string[];
  episode?: string | null;
  time?: string | null;
  max_gap?: number | null;
  terminal?: string[];
  bins?: Record<string, unknown>;
  features?: string[];
  reward?: string | null;
  outcome?: string | null;
  weight?: string | null;
  count?: string | null;
  task?: string | null;
  propensity?: string | null;
}

export interface DraftSummary {
  id: string;
  name: string;
  goal: Goal;
  method: string;
  [more: string]: unknown;
}

export interface Project {
  id: string;
  name: string;
  kind: string;
  bytes: number;
  rows: number | null;
  columns: ColumnView[];
  guess: Guess;
  mapping: Mapping | null;
  counts: string | null;
  order: { states: string[]; actions: string[] } | null;
  drafts: DraftSummary[];
}

export interface Rows {
  columns: string[];
  rows: (string | null)[][];
  then: (string | null | { break: string; by: number })[];
  of: number;
}

export interface Remedy {
  label: string;
  patch: Partial<Mapping>;
}

export interface Finding extends FindingSummary {
  fix: string;
  rows: number;
  examples: Record<string, unknown>[];
  remedies: Remedy[];
}

export interface Validation {
  rows: number;
  used: number;
  ends: number;
  left_out: { code: string; rows: number }[];
  transitions: number;
  states: { key: string; records: number; share: number; terminal: boolean }[];
  actions: { key: string; records: number }[];
  findings: Finding[];
}

/** What is wanted, as `Goal.to_dict` writes it. Labels are keys. */
export interface Goal {
  prefer?: Record<string, number>;
  floor?: number | null;
  targets?: Record<string, Record<string, number>>;
  reward?: Record<string, unknown>;
  temperature?: number;
  table?: Record<string, unknown>;
  prefer_actions?: Record<string, number>;
  action_floor?: number | null;
  forbid?: [state: string | null, action: string][];
  maximise?: string | null;
}

/**
 * One distinct transition: indices of state, action and next state, number of records, sum of their
 * weights, and of the squares of their weights (the number of records where there are no weights).
 */
export type Transition = [
  state: number,
  action: number,
  next: number,
  records: number,
  weight: number,
  weightSquared?: number,
];

export interface CountsField {
  name: string;
  values: string[];
  /** The index of each state's value. */
  of_state: number[];
}

export interface Counts {
  states: { key: string; records: number; terminal: boolean }[];
  actions: string[];
  fields: CountsField[];
  /** Null where there are too many for the browser. */
  transitions: Transition[] | null;
}

export interface Interval {
  mean: number;
  low: number;
  high: number;
}

export interface Job {
  id: string;
  kind: string;
  state: "queued" | "running" | "done" | "stopped" | "failed";
  progress: { done: number; of: number } | null;
  partial: unknown;
  result: unknown;
  problem: { type: string; title: string; detail?: string } | null;
}
