import { expect, test } from "vitest";

import type { ActionCounts, ChangedRow, Monitor, WantedShare } from "../src/lib/types";
import { changeWords, hasGrid, largestChange, oddsWords, sharesOf } from "../src/screens/watch/changes";
import { courseOf, courseWords, evidenceOf, labelsOf } from "../src/screens/watch/course";
import {
  decisionsPath,
  filterOf,
  heardWords,
  milliseconds,
} from "../src/screens/watch/decisions";
import { dueOf, missingOf, oddMissing, totalsOf } from "../src/screens/watch/totals";

function counts(action: string, changes: Partial<ActionCounts> = {}): ActionCounts {
  const rest = { decisions: 0, in_time: 0, late: 0, missing: 0, cancelled: 0, open: 0 };
  return { action, ...rest, ...changes };
}

function wanted(observed: number, outcomes = 20): WantedShare {
  return { outcomes, observed, predicted: 0.5, low: 0.4, high: 0.6 };
}

function monitor(changes: Partial<Monitor> = {}): Monitor {
  return {
    policy: "room",
    policy_version: 1,
    measure: "share of time as wanted",
    level: 0.9,
    decisions: 0,
    weak_decisions: 0,
    change: { alarm: false, evidence: 0, run_length: 1e6, outcomes: 0, since: null, rows: [] },
    rule: {
      chi_square: 0,
      degrees: 0,
      rare_observed: 0,
      rare_expected: 0,
      p_value: 1,
      actions: [],
    },
    days: [],
    batches: [],
    answer_time: null,
    ...changes,
  };
}

function batch(minute: number, evidence: number): Monitor["batches"][number] {
  const since = new Date(Date.UTC(2026, 10, 1, 12, minute)).toISOString();
  const until = new Date(Date.UTC(2026, 10, 1, 12, minute, 50)).toISOString();
  return { since, until, outcomes: 20, evidence, wanted: wanted(0.3 + minute / 100) };
}

test("a few days are shown as batches, more of them by day", () => {
  const days = ["01", "02", "03", "04", "05"].map((day) => ({
    day: `2026-11-${day}`,
    actions: [],
    wanted: wanted(0.5),
  }));
  const batches = [batch(0, 0), batch(1, 1)];
  expect(courseOf(monitor({ days: days.slice(0, 2), batches })).by).toBe("by 20 outcomes");
  const byDay = courseOf(monitor({ days, batches }));
  expect(byDay.by).toBe("by day");
  expect(byDay.observed.length).toBe(5);
  const thin = [...days, { day: "2026-11-06", actions: [], wanted: wanted(1, 1) }];
  expect(courseOf(monitor({ days: thin, batches })).observed.length).toBe(5);
  expect(courseOf(monitor()).observed).toEqual([]);
});

test("the time since the change is marked, with an alarm only", () => {
  const batches = [batch(0, -0.5), batch(1, 2), batch(2, 7)];
  const change = {
    alarm: true,
    evidence: 7,
    run_length: 1e6,
    outcomes: 60,
    since: new Date(Date.UTC(2026, 10, 1, 12, 1, 30)).toISOString(),
    rows: [],
  };
  const alarmed = monitor({ batches, change });
  expect(evidenceOf(alarmed).from).toBe(1);
  expect(evidenceOf(alarmed).evidence).toEqual([0, 2, 7]);
  expect(evidenceOf(alarmed).threshold).toBeCloseTo(6);
  expect(courseOf(alarmed).from).toBe(1);
  const calm = monitor({ batches, change: { ...change, alarm: false } });
  expect(evidenceOf(calm).from).toBeNull();
});

test("the picture says in words what is outside of the prediction", () => {
  const batches = [batch(0, 0), batch(15, 0)];
  expect(courseWords(courseOf(monitor({ batches })))).toContain("1 of 2 points outside");
  expect(courseWords(courseOf(monitor()))).toBe("No outcomes yet");
});

test("labels of an axis are few and differ", () => {
  const days = Array.from({ length: 30 }, (_, index) => new Date(2026, 9, 1 + index, 12));
  const labels = labelsOf(days);
  expect(labels.length).toBe(5);
  expect(labels[0]?.[0]).toBe(0);
  expect(labels.at(-1)?.[0]).toBe(29);
  const now = new Date(2026, 9, 1, 12, 30);
  expect(labelsOf([now, now, now])).toEqual([[0, "12:30"]]);
  expect(labelsOf([])).toEqual([]);
});

const ROW: ChangedRow = {
  state: "cool",
  action: "heat",
  evidence: 8,
  since: "2026-11-01T00:00:00Z",
  outcomes: 40,
  log: { warm: 30, cool: 10 },
  lately: { cool: 0.9, warm: 0.1 },
};

test("a change is said with both shares", () => {
  expect(sharesOf(ROW, ["warm", "hot"])).toEqual([
    { next: "warm", lately: 0.1, log: 0.75 },
    { next: "hot", lately: 0, log: 0 },
  ]);
  expect(largestChange({ ...ROW, lately: { cool: 1 } })?.lately).toBeOneOf([0, 1]);
  expect(changeWords({ ...ROW, lately: { warm: 0.1, cool: 0.5, hot: 0.4 } })).toBe(
    "led to warm 10 % of the time lately; in the log it was 75 %",
  );
  expect(changeWords({ ...ROW, log: {} })).toContain("the log has no record of it");
  expect(changeWords({ ...ROW, log: {}, lately: {} })).toBe("nothing has followed yet");
  expect(hasGrid(Array(5).fill("s"), Array(3).fill("a"))).toBe(true);
  expect(hasGrid(Array(715).fill("s"), Array(3).fill("a"))).toBe(false);
});

test("odds are words or a power of ten", () => {
  expect(oddsWords(0.2)).toBe("no odds to speak of");
  expect(oddsWords(3.4)).toBe("about 1,000 to 1");
  expect(oddsWords(32.6)).toBe("10³² to 1");
});

test("decisions add up over days and actions", () => {
  const heat = counts("heat", { decisions: 10, in_time: 6, late: 1, missing: 1, open: 2 });
  const idle = counts("idle", { decisions: 5, in_time: 4, cancelled: 1 });
  const days = [
    { day: "2026-11-01", actions: [heat, idle], wanted: null },
    { day: "2026-11-02", actions: [heat], wanted: null },
    { day: "2026-11-03", actions: [], wanted: null },
  ];
  const totals = totalsOf(monitor({ days }));
  expect(totals).toMatchObject({ decisions: 25, inTime: 16, late: 2, missing: 2, days: 2 });
  expect(dueOf(totals)).toBe(20);
  expect(missingOf(monitor({ days }), ["idle", "heat"])).toEqual([
    { action: "idle", missing: 0, due: 4, rate: 0 },
    { action: "heat", missing: 2, due: 16, rate: 0.125 },
  ]);
});

test("missing outcomes of one action are odd where chance does not explain them", () => {
  const row = (action: string, missing: number, due: number) => {
    return { action, missing, due, rate: missing / due };
  };
  const odd = oddMissing([row("heat", 10, 1000), row("idle", 20, 2000), row("vent", 50, 800)]);
  expect(odd?.action).toBe("vent");
  expect(odd?.times).toBeCloseTo(6.25);
  expect(oddMissing([row("heat", 1, 100), row("vent", 2, 100)])).toBeNull();
  expect(oddMissing([row("heat", 1, 100)])).toBeNull();
  expect(oddMissing([])).toBeNull();
});

test("filters are those of the address, and no others", () => {
  expect(filterOf({ o: "late" })).toBe("late");
  expect(filterOf({ o: "sometime" })).toBe("");
  expect(decisionsPath("my room", { o: "late", s: "a&b", c: "7", i: "x" })).toBe(
    "/v1/policies/my%20room/decisions?limit=20&status=late&state=a%26b&cursor=7",
  );
  expect(decisionsPath("room", {})).toBe("/v1/policies/room/decisions?limit=20");
});

test("times are said as people say them", () => {
  expect([0, 12_000, 180_000, 7_300_000].map(heardWords)).toEqual([
    "just now",
    "12 s ago",
    "3 min ago",
    "2 h ago",
  ]);
  expect([0.0009, 0.0124, 1.5].map(milliseconds)).toEqual(["0.9 ms", "12 ms", "1.5 s"]);
});
