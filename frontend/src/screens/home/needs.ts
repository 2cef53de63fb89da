/** What needs a look, over all logs, the most urgent first. */

import type { Step } from "../../lib/address.svelte";
import { signed } from "../../lib/format";
import type { FindingSummary, ProjectSummary } from "../../lib/types";
import type { IconName } from "../../parts/icons";
import type { Tone } from "../../parts/tones";

export interface Need {
  project: ProjectSummary;
  step: Step;
  tone: Tone;
  icon: IconName;
  title: string;
  text: string;
}

/** Findings of one log that are listed; the log itself shows the rest. */
const MOST_FINDINGS = 3;

export function needsOf(projects: ProjectSummary[]): Need[] {
  const alarms = projects.filter((each) => each.deployed?.alarm).map(alarm);
  const worse = projects.filter((each) => each.verdict === "worse").map(worseThanDone);
  const blocking = projects.flatMap((each) => findings(each, "blocks-verdict"));
  const warnings = projects.flatMap((each) => findings(each, "warn"));
  return [...alarms, ...worse, ...blocking, ...warnings];
}

function alarm(project: ProjectSummary): Need {
  return {
    project,
    step: "watch",
    tone: "bad",
    icon: "alarm",
    title: "the world has changed",
    text: `What follows decisions of ${project.deployed?.policy} no longer looks like the log.`,
  };
}

function worseThanDone(project: ProjectSummary): Need {
  const between = project.gain?.map((end) => signed(end)).join(" and ");
  const size = between === undefined ? "" : ` by between ${between}`;
  return {
    project,
    step: "trust",
    tone: "bad",
    icon: "down",
    title: "the policy is worse than what was done",
    text: `The difference is below zero${size}.`,
  };
}

function findings(project: ProjectSummary, severity: FindingSummary["severity"]): Need[] {
  const chosen = project.findings.filter((finding) => finding.severity === severity);
  const isBlocking = severity === "blocks-verdict";
  return chosen.slice(0, MOST_FINDINGS).map((finding) => ({
    project,
    step: "log",
    tone: "unsure",
    icon: "info",
    title: isBlocking ? "the log cannot say which is better" : "a finding in the log",
    text: finding.message,
  }));
}
