/**
 * What the service sends and takes, by the names that the pages use.
 *
 * `schema.d.ts` is generated from the service's own types, so a change there is a type error here.
 * Members with a default may be left out of what a page sends.
 */

import type { components } from "./schema";

type Schemas = components["schemas"];

export interface Page<T> {
  items: T[];
  next: string | null;
}

/** What is wanted, as `Goal.from_dict` takes it. Labels are keys. */
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

/** A type with a goal in place of any JSON object. */
type WithGoal<T> = Omit<T, "goal"> & { goal: Goal };

export type Session = Schemas["SessionView"];
export type ProjectSummary = Schemas["ProjectSummary"];
export type JobSummary = Schemas["JobSummary"];
export type FindingSummary = Schemas["FindingSummary"];
export type Severity = FindingSummary["severity"];
export type ColumnView = Schemas["ColumnView"];
export type Guess = Schemas["GuessView"];
export type Mapping = Partial<Schemas["Mapping"]>;
export type DraftSummary = WithGoal<Schemas["DraftSummary"]>;
export type Project = Omit<Schemas["ProjectView"], "drafts"> & { drafts: DraftSummary[] };
export type Rows = Schemas["RowsView"];
export type Finding = Schemas["FindingView"];
export type Validation = Schemas["ValidationView"];
export type MappingAnswer = Schemas["MappingView"];

export type Counts = Schemas["CountsView"];

/** What a preview contains; what is left out has its default. */
export interface Wanted {
  rule?: Partial<Schemas["WantedRule"]>;
  support?: boolean;
  ranges?: boolean;
  visits?: boolean;
  overview?: boolean;
  ideal?: boolean;
  explain?: [state: string, action: string] | null;
  /** Rows of the log behind each piece of evidence of the explanation. */
  rows?: number;
  verdict?: { samples: number; judge?: Goal | null; alternatives?: boolean } | null;
  /** How much the policy depends on who left the log. */
  past?: boolean;
}

export interface PreviewRequest {
  goal: Goal;
  /** Its name, with hyper-parameters; see `methods`. */
  method: string;
  want?: Wanted;
}

export type Preview = Schemas["PreviewView"];
export type Past = Schemas["PastView"];
export type Overview = Schemas["OverviewTable"];
export type Explanation = Schemas["ExplanationView"];
export type Reason = Schemas["ReasonView"];
export type Evidence = Schemas["EvidenceView"];
export type EvidenceRow = Schemas["EvidenceRow"];
export type Verdict = Schemas["VerdictView"];
export type VerdictWord = Schemas["ComparisonView"]["verdict"];
export type Interval = Schemas["IntervalView"];
export type Estimate = Schemas["EstimateView"];
export type Draft = WithGoal<Schemas["DraftView"]>;
export type KeptVerdict = Schemas["KeptVerdict"];

// Long work, with what it ends in and what it has so far.

export type Job<Result = unknown> = Omit<Schemas["JobView"], "result" | "partial"> & {
  result: Result | null;
  partial: Partial<Result> | null;
};
export type ComparisonResult = Schemas["ComparisonResult"];
export type GoalComparison = Schemas["GoalComparison"];
export type Pair = Schemas["PairView"];
export type ProbeResult = Schemas["ProbeResult"];
export type ProbeItem = Schemas["ProbeItem"];

// Deployed policies.

export type Policy = Schemas["PolicyView"];
export type PolicySettings = Schemas["PolicySettings"];
export type Version = Schemas["VersionView"];
export type Token = Schemas["TokenView"];
export type NewToken = Schemas["NewToken"];
export type Monitor = Schemas["MonitorView"];
export type WantedShare = Schemas["WantedView"];
export type ChangedRow = Schemas["ChangedRow"];
export type ActionCounts = Schemas["ActionCounts"];
export type Decision = Schemas["DecisionDetail"];
export type DecisionRule = Schemas["RuleView"];
export type Replay = Schemas["ReplayView"];
export type Role = Token["roles"][number];
export type Audit = Schemas["AuditView"];
