/** Findings, breaks and sums in words. */

import { Problem } from "../../lib/api";
import { counted, int, sentence } from "../../lib/format";
import type { Finding, Mapping, Rows, Severity, Validation } from "../../lib/types";
import { followingOf } from "./mapping";

type Then = Rows["then"][number];
type Break = Extract<Then, { break: string }>;

const PARTS: Record<string, string> = {
  state: "state",
  action: "action",
  "next-state": "next state",
  outcome: "outcome",
};

/** Findings by what a reader would call them; a code has one title. */
const TITLES: Record<string, string> = {
  gap: "Records are missing in between",
  "duplicate-time": "Two records at the same time",
  "missing-episode": "Rows without an episode",
  "missing-time": "Rows without a time",
  "missing-age": "Rows without an age",
  "missing-reward": "Rows without a reward",
  "one-episode": "All rows are one episode",
  "after-terminal": "Something happens after the end",
  "broken-chain": "Next states that do not fit the next row",
  "single-record": "Episodes of a single row",
  "dead-end": "States that are entered and never left",
  "action-constant": "The action never changes within an episode",
  "few-episodes": "Actions known from very few episodes",
  "one-action": "Every state has a single action",
  "action-is-outcome": "The action seems to be the outcome",
  "no-effect": "Actions without a visible effect",
  "continuous-column": "Nearly every value is a state of its own",
  "single-transition": "Only one row can be used",
};

/** The title of a kind of finding; of a kind that this page does not know, its code. */
export function titleOf(code: string): string {
  for (const [part, name] of Object.entries(PARTS)) {
    const article = /^[aeiou]/.test(name) ? "an" : "a";
    if (code === `missing-${part}`) {
      return `Rows without ${article} ${name}`;
    }
    if (code === `not-finite-${part}`) {
      return `Rows with an infinite ${name}`;
    }
    if (code === `out-of-range-${part}`) {
      return `Rows with ${article} ${name} outside its bins`;
    }
  }
  return TITLES[code] ?? code;
}

/** What to do where the library names its parameters, in the words of this screen. */
const FIXES: Record<string, string> = {
  gap: "Such rows end a chain of records; allow longer gaps if they should not",
  "continuous-column": "Cut it into bins, or make it a feature, from which states are learned",
};

/** A finding in two sentences: what was found, and what to do. */
export function textOfFinding(finding: Finding): string {
  const message = finding.message.replace(", by more than max_gap", "");
  const fix = FIXES[finding.code] ?? finding.fix;
  return `${sentence(message)} ${sentence(fix)}`;
}

/** Why rows are left out, as the end of "12 …". */
const REASONS: Record<string, string> = {
  gap: "followed too late",
  "duplicate-time": "at the time of another row",
  "after-terminal": "after the end of their episode",
};

export function reasonOf(code: string): string {
  const title = titleOf(code);
  return REASONS[code] ?? title.replace(/^Rows /, "");
}

/** Why a row has no next state, in the few words of a cell. */
export function breakWords(given: Break): string {
  if (given.break === "gap") {
    return typeof given.by === "string" ? `${given.by} later` : `a gap of ${given.by ?? "?"}`;
  }
  const words: Record<string, string> = {
    "duplicate-time": "same time as another",
    "after-terminal": "after the end",
  };
  return words[given.break] ?? reasonOf(given.break).replace(/^without an? /, "no ");
}

/** The end of a chain of records. */
export function endWords(mapping: Mapping): string {
  return mapping.episode ? "end of episode" : "end of the log";
}

/** Where the column *then* comes from. */
export function thenWords(mapping: Mapping): string {
  const words = {
    column: "from its own column",
    outcome: "what came of it",
    record: "from the next record",
    nothing: "not known yet",
  };
  return words[followingOf(mapping)];
}

/** What is to be done on the screen, after the size of the log. */
export function taskWords(mapping: Mapping): string {
  const words = {
    column: "the next state has a column of its own.",
    outcome: "each decision stands alone, with its outcome.",
    record: mapping.episode
      ? "the next state is read from the next record of the same episode."
      : "the next state is read from the next record.",
    nothing: "then the page shows what followed each row.",
  };
  return `Say which column is what; ${words[followingOf(mapping)]}`;
}

/** What a screen reader says after each change. */
export function usableSentence(found: Validation): string {
  const which = found.sampled === null ? "" : "the first ";
  const rows = `${int(found.used)} of ${which}${counted(found.rows, "row")} usable`;
  const findings = found.findings.length;
  const seen = findings === 0 ? "no findings" : counted(findings, "finding");
  return `${rows}, ${seen}`;
}

const URGENCY: Severity[] = ["blocks-verdict", "warn", "note"];

/** Findings, the most serious ones first. */
export function sortedFindings(findings: Finding[]): Finding[] {
  return [...findings].sort(
    (one, other) => URGENCY.indexOf(one.severity) - URGENCY.indexOf(other.severity),
  );
}

/** What findings mean for going on. */
export function findingsNote(findings: Finding[]): string {
  const blocking = findings.filter((finding) => finding.severity === "blocks-verdict").length;
  if (findings.length === 0) {
    return "";
  }
  if (blocking > 0) {
    return "no fair verdict from this log";
  }
  return findings.length === 1 ? "it does not stop you" : "none of them stops you";
}

/** What the library says against a mapping, in the words of this screen. */
export function refusal(problem: Problem, title = "Nothing can be learned from it yet:"): Problem {
  if (problem.status !== 422) {
    return problem;
  }
  const parts = problem.errors.map(({ pointer, near }) => ({ pointer, near }));
  const detail = problem.detail
    .replace(/\bmax_gap\b/g, "the longest gap")
    .replace(/\bhalf_life\b/g, "the half-life");
  return new Problem(problem.slug, title, sentence(detail), parts, problem.status);
}
