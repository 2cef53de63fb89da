/** What needs a look, over all logs, the most urgent first; what is under way comes last. */

import type { Step } from "../../lib/address.svelte";
import { int, sentence, signed } from "../../lib/format";
import type { FindingSummary, JobSummary, ProjectSummary } from "../../lib/types";
import type { IconName } from "../../parts/icons";
import type { Tone } from "../../parts/tones";

export interface Need {
  project: ProjectSummary;
  step: Step;
  tone: Tone;
  icon: IconName;
  title: string;
  text: string;
  /** What is under way, which can be stopped. */
  job?: JobSummary;
}

/** Findings of one log that are listed; the log itself shows the rest. */
const MOST_FINDINGS = 3;

export function needsOf(projects: ProjectSummary[]): Need[] {
  const alarms = projects.filter((each) => each.deployed?.alarm).map(alarm);
  const worse = projects.filter((each) => each.verdict === "worse").map(worseThanDone);
  const blocking = projects.flatMap((each) => findings(each, "blocks-verdict"));
  const warnings = projects.flatMap((each) => findings(each, "warn"));
  const underWay = projects.flatMap((each) => each.jobs.map((job) => working(each, job)));
  return [...alarms, ...worse, ...blocking, ...warnings, ...underWay];
}

function alarm(project: ProjectSummary): Need {
  return {
    project,
    step: "watch",
    tone: "bad",
    icon: "alarm",
    title: "the world has changed",
    text: `What follows decisions of “${project.deployed?.policy}” no longer looks like the log.`,
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
    text: sentence(finding.message),
  }));
}

/** Jobs in words, and the step that shows them. */
const WORK: Partial<Record<JobSummary["kind"], { step: Step; title: string; unit: string }>> = {
  verdict: { step: "trust", title: "a verdict is under way", unit: "models" },
  comparison: { step: "compare", title: "a comparison is under way", unit: "evaluations" },
  probe: { step: "trust", title: "more columns are being tried", unit: "columns" },
};

function working(project: ProjectSummary, job: JobSummary): Need {
  const work = WORK[job.kind] ?? { step: "log", title: "work is under way", unit: "parts" };
  const progress =
    job.of === null ? "Just started" : `${int(job.done)} of ${int(job.of)} ${work.unit}`;
  return {
    project,
    step: work.step,
    tone: "plain",
    icon: "clock",
    title: work.title,
    text: `${progress}${soFar(job)}.`,
    job,
  };
}

/** What the models so far say. */
function soFar(job: JobSummary): string {
  if (job.so_far === null) {
    return "";
  }
  const isSure = job.so_far !== "cannot tell";
  return isSure ? `; so far ${job.so_far} than what was done` : "; so far they cannot tell";
}
