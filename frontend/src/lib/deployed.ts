/** Deployed policies and their versions, as Deploy and Watch name them. */

import type { DraftSummary, Policy, Version } from "./types";

/** The policy of the address; otherwise one that is live, or the newest. */
export function chosen(policies: Policy[], name: string | null): Policy | null {
  const named = policies.find((each) => each.name === name);
  const live = policies.find((each) => each.settings.mode === "live");
  const newest = [...policies].sort((a, b) => b.created.localeCompare(a.created))[0];
  return named ?? live ?? newest ?? null;
}

/** The draft that a version was made of; one that was changed since is another policy. */
export function draftOf(version: Version, drafts: DraftSummary[]): DraftSummary | undefined {
  const place = `${version.policy}@${version.version}`;
  return drafts.find((draft) => draft.deployed.includes(place));
}

/** The end of the note of a version that was learned from decisions. */
export const LEARNED = /\s*\(learned by [\w-]+\)$/;

/** What a version is called. */
export function titleOf(version: Version, draft: DraftSummary | undefined): string {
  if (draft !== undefined) {
    return draft.name;
  }
  if (LEARNED.test(version.note)) {
    return "Learned from decisions";
  }
  return version.note === "" ? `Version ${version.version}` : version.note;
}
