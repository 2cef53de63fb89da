import { expect, test } from "vitest";

import { marksOf } from "../src/lib/projects.svelte";
import type { ProjectSummary } from "../src/lib/types";
import { needsOf } from "../src/screens/home/needs";

function project(changes: Partial<ProjectSummary>): ProjectSummary {
  return {
    id: "rooms",
    name: "Rooms",
    kind: "csv",
    rows: 480,
    states: 5,
    actions: 3,
    counts: null,
    goal: "be in mild",
    verdict: "better",
    gain: [0.02, 0.04],
    deployed: null,
    changed: "2026-11-16T12:00:00Z",
    findings: [],
    origin: "path",
    drafts: 1,
    jobs: [],
    ...changes,
  };
}

const running = { policy: "room", mode: "live", alarm: true, version: 3 } as const;
const gap = { code: "gap", severity: "warn", message: "156 gaps" } as const;
const constant = { code: "constant", severity: "blocks-verdict", message: "one action" } as const;
const note = { code: "note", severity: "note", message: "a note" } as const;

test("what is most urgent comes first, and notes need no look", () => {
  const projects = [
    project({ id: "a", findings: [note, gap] }),
    project({ id: "b", findings: [constant] }),
    project({ id: "c", verdict: "worse" }),
    project({ id: "d", deployed: running }),
    project({ id: "e" }),
  ];
  expect(needsOf(projects).map((need) => [need.project.id, need.step])).toEqual([
    ["d", "watch"],
    ["c", "trust"],
    ["b", "log"],
    ["a", "log"],
  ]);
});

test("a comparison counts what it evaluates", () => {
  const job = { id: "j", kind: "comparison", state: "running", done: 3, of: 4, so_far: null };
  const [need] = needsOf([project({ jobs: [job] as unknown as ProjectSummary["jobs"] })]);
  expect(need?.text).toBe("3 of 4 evaluations.");
});

test("what is under way comes last, with its progress and what it says so far", () => {
  const job = { id: "job_1", kind: "verdict", done: 120, of: 2000, so_far: "better" } as const;
  const projects = [project({ id: "a", jobs: [job] }), project({ id: "b", findings: [gap] })];
  const needs = needsOf(projects);
  expect(needs.map((need) => need.project.id)).toEqual(["b", "a"]);
  expect(needs[1]?.job).toEqual(job);
  expect(needs[1]?.step).toBe("trust");
  expect(needs[1]?.text).toBe("120 of 2,000 models; so far better than what was done.");
});

test("a log with many findings does not crowd out the others", () => {
  const findings = Array.from({ length: 20 }, () => gap);
  expect(needsOf([project({ findings })]).length).toBeLessThan(5);
});

test("marks of the steps follow the log, the verdict and what runs", () => {
  expect(marksOf(project({}))).toEqual({ log: "ok", policy: "ok", trust: "ok" });
  expect(marksOf(project({ findings: [constant] })).trust).toBe("warn");
  expect(marksOf(project({ verdict: "cannot tell" })).trust).toBe("warn");
  expect(marksOf(project({ verdict: "worse" })).trust).toBe("bad");
  expect(marksOf(project({ deployed: running })).watch).toBe("bad");
  expect(marksOf(project({ states: null, goal: null, verdict: null }))).toEqual({});
});
