/** Decisions in words, and the filters of the address. */

import type { Query } from "../../lib/address.svelte";
import { path } from "../../lib/api";
import type { Decision } from "../../lib/types";
import type { IconName } from "../../parts/icons";
import type { Tone } from "../../parts/tones";

export const FILTERS = [
  { value: "", text: "All" },
  { value: "open", text: "Awaited" },
  { value: "in-time", text: "In time" },
  { value: "late", text: "Late" },
  { value: "missing", text: "Missing" },
  { value: "conflict", text: "Conflict" },
] as const;

export type Filter = (typeof FILTERS)[number]["value"];

export function filterOf(query: Query): Filter {
  return FILTERS.find((each) => each.value === query.o)?.value ?? "";
}

/** Decisions on one page. */
const PAGE = 20;

/** The request for the decisions that the address names. */
export function decisionsPath(policy: string, query: Query): string {
  const asked = new URLSearchParams({ limit: String(PAGE) });
  const names = { status: filterOf(query), state: query.s, action: query.a, cursor: query.c };
  for (const [name, value] of Object.entries(names)) {
    if (value) {
      asked.set(name, value);
    }
  }
  return `${path`/v1/policies/${policy}/decisions`}?${asked.toString()}`;
}

export interface StatusView {
  text: string;
  tone: Tone;
  icon: IconName;
  /** What it means, in the sheet of a decision. */
  meaning: string;
}

const STATUSES: Record<Decision["status"], StatusView> = {
  open: { text: "awaited", tone: "plain", icon: "clock", meaning: "awaited" },
  waiting: {
    text: "in time",
    tone: "good",
    icon: "check",
    meaning: "in time; learned when its window closes",
  },
  learned: { text: "in time", tone: "good", icon: "check", meaning: "in time, learned" },
  recorded: { text: "in time", tone: "good", icon: "check", meaning: "in time, kept, not learned" },
  late: { text: "late", tone: "unsure", icon: "clock", meaning: "late: kept, not learned" },
  missing: { text: "missing", tone: "bad", icon: "x", meaning: "missing: it never came" },
  cancelled: { text: "cancelled", tone: "plain", icon: "ban", meaning: "nothing was done" },
  "new-label": {
    text: "new label",
    tone: "unsure",
    icon: "info",
    meaning: "in time, in a state that the version does not have",
  },
};

export function statusOf(decision: Decision): StatusView {
  return STATUSES[decision.status];
}

/** The last characters of an id, which differ; the first ones are the time. */
export function shortId(id: string): string {
  return id.slice(-12);
}

/** How long ago something was heard of: just now, 12 s ago, 3 min ago. */
export function heardWords(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 5) {
    return "just now";
  }
  if (seconds < 60) {
    return `${seconds} s ago`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ago` : `${Math.floor(minutes / 60)} h ago`;
}

/** Seconds as a person reads them: 0.9 ms, 12 ms, 1.5 s. */
export function milliseconds(seconds: number): string {
  const value = 1000 * seconds;
  if (value >= 1000) {
    return `${seconds.toFixed(1)} s`;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
