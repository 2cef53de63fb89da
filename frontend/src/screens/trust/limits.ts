/** What a verdict does not say, as a plain list: each entry has a tone and a sentence. */

import { counted, int, num, pct, sentence } from "../../lib/format";
import type { Finding, Past, Verdict } from "../../lib/types";

export interface Limit {
  tone: "ok" | "info" | "warn";
  text: string;
  /** What there is to do about it. */
  remedy?: "probe" | "log" | "watch" | "past";
}

/**
 * Everything that a reader should know before a verdict is used.
 *
 * @param past - how much the policy depends on who left the log, where its method infers that
 * @param skill - how good the past was, where somebody has said it
 */
export function limitsOf(
  verdict: Verdict,
  findings: Finding[],
  past: Past | null,
  skill: number | null,
): Limit[] {
  const limits: Limit[] = [
    {
      tone: "ok",
      text:
        `All policies are compared on the same ${int(verdict.samples)} sampled models, ` +
        "so their differences are paired.",
    },
  ];
  if (verdict.in_sample.new !== undefined) {
    limits.push({
      tone: "ok",
      text:
        "What it gains from being judged on its own records is measured on halves of the log, " +
        "and taken off.",
    });
  }

  // What this log shows to be a problem.
  for (const finding of findings.filter((each) => each.severity === "warn")) {
    limits.push({ tone: "warn", text: sentence(finding.message), remedy: "log" });
  }
  if (!verdict.matches_log) {
    limits.push({ tone: "warn", text: mismatch(verdict) });
  }
  if (past?.matters || skill !== null) {
    limits.push({ tone: "warn", text: pastWords(past, skill), remedy: "past" });
  }
  const rare = 1 - verdict.support.visits_well_seen;
  if (rare > 0.0005) {
    const times = verdict.support.well_seen;
    limits.push({
      tone: rare > 0.05 ? "warn" : "info",
      text:
        `Actions hardly ever tried: ${pct(rare, 1)} of its decisions were made ` +
        `fewer than ${times} times.`,
    });
  }
  limits.push(...verdict.warnings.map((text): Limit => ({ tone: "warn", text })));

  // What no log can show.
  limits.push(
    {
      tone: "info",
      text:
        "Hidden causes: if something outside the state decided both what was done and what " +
        "followed, the comparison misleads.",
      remedy: "probe",
    },
    {
      tone: "info",
      text: "Changes since the log: the world is taken to react as it did then.",
      remedy: "watch",
    },
    { tone: "info", text: "Actions never tried, and anything that the goal does not mention." },
    {
      tone: "info",
      text:
        `Anything beyond ${counted(verdict.horizon, "decision")}: it looks that far ahead from ` +
        "where episodes start.",
    },
  );
  return limits;
}

/** What the policy owes to what is known, or not known, of the past. */
function pastWords(past: Past | null, skill: number | null): string {
  if (skill !== null || past === null) {
    return "The policy rests on what somebody said of the past, not only on the log.";
  }
  const share = Math.max(past.skilled, past.opposed);
  return (
    "What the past was after: the log hardly shows it, and with another answer up to " +
    `${pct(share)} of the policy's decisions would be different.`
  );
}

/** How the model and the log differ on what was done. */
function mismatch(verdict: Verdict): string {
  const logged = verdict.values.logged;
  return (
    `In the log itself what was done had ${num(verdict.value_in_log)}, outside the interval of ` +
    `the models, ${num(logged?.low)} to ${num(logged?.high)}: more than the state matters, or the ` +
    "horizon does not match the episodes."
  );
}
