/** What a version is and was: from the policy, the drafts, and the trail of who changed what. */

import { LEARNED, titleOf } from "../../lib/deployed";
import { capital, int, sentenceDay, since } from "../../lib/format";
import { methodName } from "../../lib/methods";
import type { Audit, DraftSummary, Policy, Version } from "../../lib/types";
import type { Tone } from "../../parts/tones";

/** A change of the version in use. */
export interface Switch {
  at: string;
  who: string;
  from: number | null;
  to: number | null;
  /** Whether it was a return to an earlier version. */
  isRollback: boolean;
  reason: string;
}

export interface Standing {
  /** "live", "rolled back", …; a chip. */
  word: string;
  tone: Tone;
  /** What is behind it, as a sentence; may be empty. */
  sentence: string;
}

function parsed(text: string | null): Record<string, unknown> {
  try {
    return (JSON.parse(text ?? "{}") as Record<string, unknown> | null) ?? {};
  } catch {
    return {};
  }
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

/** Changes of the version in use of a policy, the newest first. */
export function switchesOf(audit: Audit[], policy: string): Switch[] {
  const switches: Switch[] = [];
  for (const row of audit) {
    const after = parsed(row.after);
    const isSwitch = row.subject === policy && "version" in after && "version" in parsed(row.before);
    if (!isSwitch) {
      continue;
    }
    switches.push({
      at: row.at,
      who: row.who,
      from: numberOf(parsed(row.before).version),
      to: numberOf(after.version),
      isRollback: row.what === "rollback",
      reason: typeof after.reason === "string" ? after.reason : "",
    });
  }
  return switches;
}

/** The version to roll back to: the one that the present one took over from. */
export function previousVersion(policy: Policy, switches: Switch[]): number | null {
  const current = policy.settings.version;
  const entry = switches.find(
    (each) => each.to === current && each.from !== current && !each.isRollback,
  );
  return entry?.from ?? null;
}

const MODES: Record<Policy["settings"]["mode"], Tone> = {
  live: "good",
  shadow: "accent",
  paused: "unsure",
};

/** How a version stands. */
export function standingOf(version: Version, policy: Policy, switches: Switch[]): Standing {
  const number = version.version;
  if (policy.settings.version === number) {
    const mode = policy.settings.mode;
    const entered = switches.find((each) => each.to === number);
    const inUse = entered === undefined ? "" : `In use ${since(entered.at)}`;
    const learned = `${int(policy.evidence)} outcomes learned`;
    return { word: mode, tone: MODES[mode], sentence: inUse && `${inUse}; ${learned}.` };
  }
  const left = switches.find((each) => each.from === number);
  if (left === undefined) {
    return { word: "not used yet", tone: "plain", sentence: "" };
  }
  const isNewer = left.to !== null && left.to < number;
  const word = left.isRollback && isNewer ? "rolled back" : "retired";
  const why = left.reason === "" ? "" : ` “${left.reason}”`;
  const successor = left.to === null ? "" : `v${left.to} took over ${onDay(left.at)}.`;
  return { word, tone: word === "rolled back" ? "bad" : "plain", sentence: successor + why };
}

/** A day with its preposition: today, on 12 Oct. */
function onDay(time: string): string {
  const text = sentenceDay(time);
  return /^\d/.test(text) ? `on ${text}` : text;
}

/** How and by whom a version was made, with what was said about it. */
export function originOf(version: Version, draft: DraftSummary | undefined): string {
  const method = draft === undefined ? "" : `${methodName(draft.method)}, `;
  const made = `made ${onDay(version.at)} by ${version.who}.`;
  const note = version.note.replace(LEARNED, "");
  const isSaid = note === "" || note === titleOf(version, draft);
  const text = `${method}${made}${isSaid ? "" : ` “${note}”`}`;
  return capital(text);
}

/** A checksum in few characters: 8c1f…e2. */
export function shortSum(sha256: string): string {
  return `${sha256.slice(0, 4)}…${sha256.slice(-2)}`;
}

/** A name of a policy that the service takes: letters, digits, dots, dashes. */
export function policyName(text: string): string {
  const name = text
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|-+$/g, "");
  return name.slice(0, 100) || "policy";
}
