/**
 * What speaks for and against a version before it is put to use: the verdict on its goal, and every
 * objection that whoever goes on has to accept by name.
 */

import { get, path } from "../../lib/api";
import { preview } from "../../lib/preview";
import type { Draft, Finding, Goal, Verdict, VerdictWord } from "../../lib/types";
import { isOverruled } from "../../lib/verdict";

/** Up to so many states a verdict takes well below a second; above, the last one of Trust counts. */
const MOST_STATES = 300;
const SAMPLES = 2000;

export interface Judged {
  verdict: VerdictWord;
  /** The interval that decides, of the difference to what was done. */
  low: number | null;
  high: number | null;
  /** Probability of that interval. */
  level: number | null;
  alarm: boolean;
  /** Whether findings or objections overrule the verdict. */
  overruled: boolean;
  /** What else the evaluation objects. */
  objections: Objection[];
  samples: number;
}

export interface Objection {
  code: string;
  message: string;
}

export interface Subject {
  counts: string;
  goal: Goal;
  method: string;
  draft: string;
  states: number;
}

/** The verdict on a policy; null where nobody has asked for one yet. */
export async function judge(subject: Subject, signal: AbortSignal): Promise<Judged | null> {
  if (subject.states > MOST_STATES) {
    const draft = await get<Draft>(path`/v1/drafts/${subject.draft}`, { signal });
    return keptVerdict(draft);
  }
  const { counts, goal, method } = subject;
  const want = { verdict: { samples: SAMPLES } };
  const answer = await preview(counts, { goal, method, want }, signal);
  return answer.verdict === null ? null : judgedOf(answer.verdict);
}

function judgedOf(verdict: Verdict): Judged {
  const against = verdict.comparisons.logged;
  return {
    verdict: against?.verdict ?? "cannot tell",
    low: against?.deciding.low ?? null,
    high: against?.deciding.high ?? null,
    level: against?.deciding.level ?? null,
    alarm: verdict.alarm.raised,
    overruled: isOverruled(verdict),
    objections: verdict.objections,
    samples: verdict.samples,
  };
}

/** The last verdict on a draft by its own goal. */
export function keptVerdict(draft: Pick<Draft, "sentence" | "verdicts">): Judged | null {
  const kept = draft.verdicts.filter((each) => each.judge === draft.sentence).at(-1);
  if (kept === undefined) {
    return null;
  }
  return {
    verdict: kept.verdict,
    low: kept.difference?.[0] ?? null,
    high: kept.difference?.[1] ?? null,
    level: kept.level,
    alarm: kept.alarm,
    overruled: kept.overruled,
    objections: kept.objections,
    samples: kept.samples,
  };
}

/** Every objection, the gravest first; each has a code that is stored with the version. */
export function objectionsOf(
  judged: Judged | null,
  findings: Finding[],
  hasChanged: boolean,
): Objection[] {
  const objections: Objection[] = [];
  function object(code: string, message: string): void {
    if (!objections.some((each) => each.code === code)) {
      objections.push({ code, message });
    }
  }

  // What runs, and what the log says of the policy.
  if (hasChanged) {
    object("changed", "The world has changed since this version was learned.");
  }
  if (judged === null) {
    object("no-verdict", "There is no verdict on this version yet.");
  } else {
    if (judged.alarm) {
      object("alarm", "Alarm: by the log, it may do harm.");
    }
    if (judged.verdict === "worse") {
      object("worse", "By the log, it is worse than what was done.");
    }
    judged.objections.forEach((each) => object(each.code, each.message));
  }

  // Findings of the log that overrule any verdict.
  for (const finding of findings) {
    if (finding.severity === "blocks-verdict") {
      object(finding.code, finding.message);
    }
  }
  return objections;
}
