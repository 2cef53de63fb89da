import { expect, test } from "vitest";

import { chosen, draftOf, titleOf } from "../src/lib/deployed";
import type { Audit, Counts, DraftSummary, Finding, KeptVerdict, Policy, PolicySettings, Version } from "../src/lib/types";
import { codeOf, type Example, serveCommand, shellWord, stepOf } from "../src/screens/deploy/code";
import { collision } from "../src/screens/deploy/collision";
import { durationWords, split, toSeconds } from "../src/screens/deploy/duration";
import { type Judged, keptVerdict, objectionsOf } from "../src/screens/deploy/judging";
import {
  originOf,
  policyName,
  previousVersion,
  standingOf,
  switchesOf,
} from "../src/screens/deploy/versions";

const SETTINGS: PolicySettings = {
  mode: "live",
  version: 3,
  outcome_due_s: 7200,
  learn: true,
  learn_delay: "none",
  on_unseen: "refuse",
  floor: 0.02,
  on_alarm: "shadow",
  labels: "closed",
  retention_days: 400,
  context_days: 30,
};

function policy(changes: Partial<Policy> = {}): Policy {
  return {
    name: "room",
    settings: SETTINGS,
    etag: "5",
    created: "2026-10-01T00:00:00Z",
    seq: 10,
    evidence: 7,
    learns: true,
    alarm: false,
    ...changes,
  };
}

function version(number: number, changes: Partial<Version> = {}): Version {
  return {
    policy: "room",
    version: number,
    sha256: "ab".repeat(32),
    bytes: 100,
    note: "",
    despite: [],
    who: "anna",
    at: "2026-10-01T10:00:00Z",
    ...changes,
  };
}

function audit(what: string, before: unknown, after: unknown, subject = "room"): Audit {
  return {
    number: 1,
    at: "2026-10-05T10:00:00Z",
    who: "anna",
    what,
    subject,
    before: JSON.stringify(before),
    after: JSON.stringify(after),
  };
}

// From 1 to 2, back to 1, then to 3; the newest first, as the service sends them.
const TRAIL = [
  audit("settings", { mode: "shadow" }, { mode: "live" }),
  audit("settings", { version: 1 }, { version: 3 }),
  audit("rollback", { version: 2 }, { version: 1, reason: "too slow" }),
  audit("settings", { version: 1 }, { version: 2 }),
  audit("settings", { version: null }, { version: 1 }),
  audit("settings", { version: 8 }, { version: 9 }, "other"),
];

test("a version is in use, rolled back with its reason, retired, or not used yet", () => {
  const switches = switchesOf(TRAIL, "room");
  const words = [1, 2, 3, 4].map((n) => standingOf(version(n), policy(), switches).word);
  expect(words).toEqual(["retired", "rolled back", "live", "not used yet"]);
  expect(standingOf(version(2), policy(), switches).sentence).toContain("too slow");
  expect(standingOf(version(3), policy(), switches).sentence).toContain("7 outcomes learned");
});

test("a rollback leads to the version that was in use before", () => {
  expect(previousVersion(policy(), switchesOf(TRAIL, "room"))).toBe(1);
  const first = policy({ settings: { ...SETTINGS, version: 1 } });
  expect(previousVersion(first, switchesOf(TRAIL.slice(4), "room"))).toBeNull();
  // After the rollback to 1 there is nothing before it, and 2 is not offered again.
  expect(previousVersion(first, switchesOf(TRAIL.slice(2), "room"))).toBeNull();
});

test("a version is named by its draft, or by how it was learned", () => {
  const draft = { name: "Comfort", method: "TL", deployed: ["room@3"] } as DraftSummary;
  const made = version(3, { note: "for winter" });
  expect(draftOf(made, [draft])).toBe(draft);
  expect(draftOf(version(4), [draft])).toBeUndefined();
  expect(titleOf(made, draft)).toBe("Comfort");
  expect(originOf(made, draft)).toMatch(/^Similarity, made .* by anna\. “for winter”$/);
  const learned = version(4, { note: "last week (learned by job_1)" });
  expect(titleOf(learned, undefined)).toBe("Learned from decisions");
  expect(originOf(learned, undefined)).toContain("“last week”");
});

test("a name for a policy is one that the service takes", () => {
  const names = ["thermostat", "Migräne 2", "  ..x", "室", "a".repeat(200)].map(policyName);
  names.forEach((name) => expect(name).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/));
  expect(policyName("My Log")).toBe("my-log");
});

test("durations have the largest unit in which they are whole", () => {
  expect(split(7200)).toEqual({ amount: 2, unit: "hours" });
  expect(split(5400)).toEqual({ amount: 90, unit: "minutes" });
  expect(split(100)).toEqual({ amount: 100, unit: "seconds" });
  for (const seconds of [0.5, 60, 90, 3600, 86400, 100000]) {
    const { amount, unit } = split(seconds);
    expect(toSeconds(amount, unit)).toBe(seconds);
  }
  expect(durationWords(86400)).toBe("1 day");
});

const EXAMPLE: Example = {
  address: "http://127.0.0.1:8765",
  policy: "room",
  version: 3,
  state: `it's "cool" <b>`,
  action: "heat\nimport os",
  next: "warm",
  hasRewards: false,
  learns: true,
};

test("code shows what the log has most often", () => {
  const oneShot = {
    states: [
      { key: "old", records: 10, terminal: false },
      { key: "young", records: 30, terminal: false },
      { key: "ill", records: 0, terminal: true },
      { key: "well", records: 0, terminal: true },
    ],
    actions: ["a", "b"],
    transitions: [
      [0, 0, 2, 10],
      [1, 0, 2, 9],
      [1, 1, 3, 21],
    ],
    has_rewards: false,
  } as unknown as Counts;
  const step = { state: "young", action: "b", next: "well", hasRewards: false };
  expect(stepOf(oneShot)).toEqual(step);
  expect(stepOf({ ...oneShot, transitions: null })).toMatchObject({ state: "young", next: "young" });
  const rewarded = { ...EXAMPLE, hasRewards: true };
  expect(codeOf("python", rewarded)).toContain(`"warm", reward=1.0)`);
  expect(codeOf("curl", rewarded)).toContain(`{"next_state":"warm","reward":1}`);
});

test("code quotes any label", () => {
  const python = codeOf("python", EXAMPLE);
  expect(python).toContain(`client.decide("room", "it's \\"cool\\" <b>")`);
  expect(python).toContain(`"heat\\nimport os", by="my program")`);
  const pair = { ...EXAMPLE, state: `["mild", "sun"]` };
  expect(codeOf("python", pair)).toContain(`client.decide("room", '["mild", "sun"]')`);
  const curl = codeOf("curl", EXAMPLE);
  expect(curl).toContain(`--json '{"state":"it'\\''s \\"cool\\" <b>"}'`);
  expect(codeOf("process", EXAMPLE)).toContain(`pw.load("room-3.safetensors").live(seed=1)`);
  expect(codeOf("process", { ...EXAMPLE, learns: false })).not.toContain("observe");
  expect(shellWord("a b")).toBe("'a b'");
  expect(serveCommand("/my data", EXAMPLE.address)).toBe(
    "pastwise serve --data '/my data' --listen 127.0.0.1:8765",
  );
});

const JUDGED: Judged = {
  verdict: "better",
  low: 0.05,
  high: 0.1,
  level: 0.9,
  alarm: false,
  overruled: false,
  objections: [],
  samples: 2000,
};
const CONSTANT = { code: "action-constant", severity: "blocks-verdict", message: "…" } as Finding;
const GAP = { code: "gap", severity: "warn", message: "…" } as Finding;

test("every objection has to be accepted by name", () => {
  expect(objectionsOf(JUDGED, [GAP], false)).toEqual([]);
  const codes = (judged: Judged | null, findings: Finding[], hasChanged = false): string[] =>
    objectionsOf(judged, findings, hasChanged).map((each) => each.code);
  expect(codes(JUDGED, [GAP], true)).toEqual(["changed"]);
  expect(codes(null, [])).toEqual(["no-verdict"]);
  expect(codes({ ...JUDGED, alarm: true, verdict: "worse" }, [])).toEqual(["alarm", "worse"]);
  const same = { ...JUDGED, objections: [{ code: "action-constant", message: "…" }] };
  expect(codes(same, [CONSTANT])).toEqual(["action-constant"]);
});

test("a kept verdict is overruled as it was when it was found", () => {
  const objections = [{ code: "hardly-tried", message: "…" }];
  const kept: KeptVerdict = {
    job: "job_1",
    at: "2026-10-01T10:00:00Z",
    verdict: "cannot tell",
    difference: [0.06, 0.14],
    alarm: false,
    samples: 2000,
    judge: "be in warm",
    goal: null,
    level: 0.9,
    overruled: true,
    objections,
  };
  const judged = keptVerdict({ sentence: "be in warm", verdicts: [kept] });
  expect(judged?.overruled).toBe(true);
  expect(judged?.level).toBe(0.9);
  expect(objectionsOf(judged, [], false)).toEqual(objections);
  expect(keptVerdict({ sentence: "be in cold", verdicts: [kept] })).toBeNull();
});

test("both sides of a collision are shown, and nothing else", () => {
  const theirs = policy({ settings: { ...SETTINGS, floor: 0.05 } });
  const rows = collision({ mine: { outcome_due_s: 60 }, seen: SETTINGS, theirs });
  expect(rows).toEqual([
    { setting: "Outcome due within", seen: "2 hours", theirs: "2 hours", mine: "1 minute" },
    { setting: "Never less than", seen: "0.02", theirs: "0.05", mine: null },
  ]);
});

test("the policy of the address is shown, or one that is live, or the newest", () => {
  const shadow = { ...SETTINGS, mode: "shadow" } as const;
  const old = policy({ name: "old", settings: shadow });
  const fresh = policy({ name: "new", settings: shadow, created: "2026-11-01T00:00:00Z" });
  const live = policy({ name: "live" });
  expect(chosen([old, fresh, live], "old")?.name).toBe("old");
  expect(chosen([old, fresh, live], "gone")?.name).toBe("live");
  expect(chosen([old, fresh], null)?.name).toBe("new");
  expect(chosen([], null)).toBeNull();
});
