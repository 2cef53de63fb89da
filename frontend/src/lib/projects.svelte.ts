/** The logs that are open in this workbench: one list for the sidebar, the palette and Home. */

import { asProblem, get, type Problem } from "./api";
import { onReturn } from "./connection.svelte";
import { latest } from "./latest";
import type { Page, ProjectSummary } from "./types";

interface Projects {
  /** Null until the first answer. */
  items: ProjectSummary[] | null;
  problem: Problem | null;
}

export const projects: Projects = $state({ items: null, problem: null });

/** Where the list is. */
export const PROJECTS = "/v1/projects?limit=500";

const asked = latest(
  (_: null, signal) => get<Page<ProjectSummary>>(PROJECTS, { signal }),
  {
    receive(page) {
      projects.items = page.items;
      projects.problem = null;
    },
    fail(error) {
      projects.problem = asProblem(error);
    },
  },
);

/** Asks for the list again, as after a log was opened, saved or deployed. */
export function refreshProjects(): void {
  asked.ask(null);
}

/** Waits for the list, where what comes next needs it. */
export async function reloadProjects(): Promise<void> {
  const page = await get<Page<ProjectSummary>>(PROJECTS);
  projects.items = page.items;
}

onReturn(refreshProjects);

/** The log with this id, as far as it is known. */
export function projectOf(id: string | null): ProjectSummary | undefined {
  return projects.items?.find((project) => project.id === id);
}

export type Mark = "ok" | "warn" | "bad";

/** How each step of a log stands, where there is something to say. */
export function marksOf(project: ProjectSummary): Partial<Record<string, Mark>> {
  const marks: Partial<Record<string, Mark>> = {};
  const isOdd = project.findings.some((finding) => finding.severity !== "note");
  const isBlocked = project.findings.some((finding) => finding.severity === "blocks-verdict");
  if (isOdd) {
    marks.log = "warn";
  } else if (project.states !== null) {
    marks.log = "ok";
  }
  if (project.goal !== null) {
    marks.policy = "ok";
  }
  if (project.verdict !== null) {
    marks.trust = isBlocked ? "warn" : markOfVerdict(project.verdict);
  }
  if (project.deployed !== null) {
    marks.deploy = "ok";
    marks.watch = project.deployed.alarm ? "bad" : "ok";
  }
  return marks;
}

function markOfVerdict(verdict: string): Mark {
  if (verdict === "better") {
    return "ok";
  }
  return verdict === "worse" ? "bad" : "warn";
}
