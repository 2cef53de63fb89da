import { expect, test } from "vitest";

import { sentence } from "../src/lib/format";
import type { Finding, Guess, Mapping, Project, Validation } from "../src/lib/types";
import {
  binsOf,
  isCutAnyway,
  movedEdge,
  parseEdges,
  stepOf,
  withBins,
  withEdge,
  withoutEdge,
} from "../src/screens/log/bins";
import {
  followingOf,
  guessedMapping,
  inAddress,
  isSame,
  lackOf,
  mappingOf,
  patched,
  spanOf,
  textOf,
  withTerminal,
} from "../src/screens/log/mapping";
import { byNumber, movedTo, ordered } from "../src/screens/log/order";
import { columnOrder, rolesOf, withColumnAt, withRole } from "../src/screens/log/roles";
import {
  breakWords,
  findingsNote,
  sortedFindings,
  titleOf,
  usableSentence,
} from "../src/screens/log/words";
import { python } from "./python";

const rooms: Mapping = { state: ["room"], action: ["did"], episode: "day", time: "hour" };

const guess: Guess = {
  state: ["room"],
  action: ["did"],
  next_state: [],
  episode: "day",
  time: "hour",
  confidence: 0.9,
  why: "",
  outcome: null,
  binned: [],
};

function project(changes: Partial<Project>): Project {
  return { guess, mapping: null, validation: null, columns: [], ...changes } as Project;
}

function finding(code: string, severity: Finding["severity"]): Finding {
  return { code, severity, message: "", fix: "", rows: 1, examples: [], remedies: [] };
}

// Roles

test("a column has one role, and a role of one column has one column", () => {
  const other = withRole(rooms, "minute", "time");
  expect(rolesOf(other, "minute")).toEqual(["time"]);
  expect(rolesOf(other, "hour")).toEqual([]);
  expect(withRole(rooms, "did", "state").state).toEqual(["room", "did"]);
  expect(withRole(rooms, "did", "state").action).toEqual([]);
  expect(rolesOf(withRole(rooms, "room", null), "room")).toEqual([]);
});

test("what a change of roles leaves without meaning is dropped", () => {
  const given: Mapping = { ...rooms, bins: { room: 3 }, terminal: ["hot"], max_gap: 2 };
  expect(withRole(given, "weather", "weight")).toMatchObject({
    bins: { room: 3 },
    terminal: ["hot"],
    max_gap: 2,
  });
  expect(withRole(given, "room", null)).toMatchObject({ bins: {}, terminal: [] });
  expect(withRole(given, "hour", null).max_gap).toBeNull();
  expect(withRole(given, "then", "next_state").max_gap).toBeNull();
});

test("a name that was meant takes the place that the problem points at", () => {
  const wrong: Mapping = { ...rooms, state: ["rooms"], time: "hours" };
  expect(withColumnAt(wrong, "/state/0", "room").state).toEqual(["room"]);
  expect(withColumnAt(wrong, "/time", "hour").time).toBe("hour");
  const both: Mapping = { ...rooms, state: ["weather", "rom"], action: ["room"] };
  expect(withColumnAt(both, "/state/1", "room")).toMatchObject({
    state: ["weather", "room"],
    action: [],
  });
  expect(withColumnAt(rooms, "/terminal/0", "hot")).toEqual(rooms);
});

test("columns with a role come first and no column is lost", () => {
  const columns = ["note", "did", "room", "hour", "day"];
  expect(columnOrder(columns, rooms)).toEqual(["day", "hour", "room", "did", "note"]);
  expect(columnOrder(columns, { state: ["rooms"] })).toEqual(columns);
});

// Mappings

test("equal mappings are equal as text, whatever they leave out", () => {
  const long: Mapping = { ...rooms, next_state: [], bins: {}, max_gap: null, text_labels: true };
  expect(textOf(long)).toBe(textOf(rooms));
  expect(isSame(long, { ...rooms, max_gap: 0 })).toBe(false);
  expect(isSame(rooms, { ...rooms, time: "minute" })).toBe(false);
});

test("a guess with many numbers has bins", () => {
  const given = guessedMapping({ ...guess, state: ["degrees"], binned: ["degrees"] });
  expect(given).toEqual({ ...rooms, state: ["degrees"], bins: { degrees: "auto" } });
});

test("the address holds a mapping only where the log starts with another", () => {
  const saved = project({ mapping: { ...rooms, max_gap: 2 } as Project["mapping"] });
  expect(mappingOf(undefined, project({}))).toEqual(guessedMapping(guess));
  expect(mappingOf(undefined, saved).max_gap).toBe(2);
  expect(inAddress(rooms, project({}))).toBeNull();
  const text = inAddress(rooms, saved);
  expect(mappingOf(text ?? "", saved)).toEqual(guessedMapping(guess));
  for (const broken of ["", "{", "3", "null", "[1]"]) {
    expect(mappingOf(broken, project({}))).toEqual(guessedMapping(guess));
  }
});

test("a remedy changes the members that it names", () => {
  const given: Mapping = { ...rooms, max_gap: 1, terminal: ["hot"] };
  expect(patched(given, { max_gap: 2 })).toEqual({ ...given, max_gap: 2 });
  expect(patched(given, { max_gap: null }).max_gap).toBeUndefined();
  expect(patched(given, { terminal: [] }).terminal).toBeUndefined();
});

test("a state is declared terminal next to those that are", () => {
  const states: Validation["states"] = [
    { key: "hot", records: 3, share: 0.5, terminal: true },
    { key: '["a", 1]', records: 3, share: 0.5, terminal: false },
  ];
  expect(withTerminal(rooms, states, '["a", 1]', true).terminal).toEqual(["hot", '["a", 1]']);
  expect(withTerminal(rooms, states, "hot", false).terminal).toEqual([]);
});

test("what a mapping lacks is said, and where the next state comes from", () => {
  expect(lackOf(rooms)).toBeNull();
  expect(lackOf({ ...rooms, state: [] })).toContain("state");
  expect(lackOf({ ...rooms, state: [], features: ["degrees"] })).toBeNull();
  expect(lackOf({ ...rooms, action: [] })).toContain("action");
  expect(lackOf({ ...rooms, time: null })).toContain("follows");
  expect(followingOf(rooms)).toBe("record");
  expect(followingOf({ ...rooms, next_state: ["then"] })).toBe("column");
  expect(followingOf({ state: ["a"], action: ["b"], outcome: "c" })).toBe("outcome");
  expect(followingOf({ state: ["a"], action: ["b"], reward: "c" })).toBe("outcome");
  expect(followingOf({ ...rooms, reward: "c" })).toBe("record");
});

test("spans are numbers, texts with a unit, or nothing", () => {
  expect(spanOf(" 2.5 ")).toBe(2.5);
  expect(spanOf("36h")).toBe("36h");
  expect(spanOf("")).toBeNull();
});

// Bins

test("bins of one column do not change those of another", () => {
  const given: Mapping = { ...rooms, state: ["a", "b"], bins: "auto" };
  expect(binsOf(given, "a")).toBe("auto");
  expect(withBins(given, "a", [1, 2], ["a", "b"]).bins).toEqual({ a: [1, 2], b: "auto" });
  expect(withBins(given, "b", null, ["a", "b"]).bins).toEqual({ a: "auto" });
});

test("many rewards of one-shot decisions are cut without being asked", () => {
  const bandit: Mapping = { state: ["a"], action: ["b"], reward: "c" };
  expect(isCutAnyway(bandit, "c", [1, 2])).toBe(true);
  expect(isCutAnyway(bandit, "c", [])).toBe(false);
  expect(isCutAnyway(bandit, "a", [1, 2])).toBe(false);
  expect(isCutAnyway({ ...bandit, outcome: "d" }, "c", [1, 2])).toBe(false);
  expect(isCutAnyway({ ...rooms, reward: "c" }, "c", [1, 2])).toBe(false);
});

test("a moved edge stays between its neighbours, at a round number", () => {
  expect(movedEdge([10, 20, 30], 1, 23.456789, 0, 100)).toEqual([10, 23.5, 30]);
  for (const value of [-50, 10, 30, 99]) {
    const [low, moved, high] = movedEdge([10, 20, 30], 1, value, 0, 100);
    expect(low).toBe(10);
    expect(high).toBe(30);
    expect(moved).toBeGreaterThan(10);
    expect(moved).toBeLessThan(30);
  }
  expect(movedEdge([0.1], 0, -7, 0, 1)[0]).toBeGreaterThan(0);
  expect(stepOf(3, 3)).toBe(1);
});

test("edges are added in the widest bin, removed and typed", () => {
  expect(withEdge([], 0, 100)).toEqual([50]);
  expect(withEdge([80], 0, 100)).toEqual([40, 80]);
  expect(withEdge([20, 40], 0, 100)).toEqual([20, 40, 70]);
  expect(withoutEdge([1, 2, 3], 1)).toEqual([1, 3]);
  expect(parseEdges("24, 18 21.5")).toEqual([18, 21.5, 24]);
  expect(parseEdges("−5; 5")).toEqual([-5, 5]);
  expect(parseEdges("warm")).toBeNull();
  expect(parseEdges(" ")).toBeNull();
});

// Order

test("a saved order holds as far as it names what there is", () => {
  expect(ordered(["a", "b", "c"], ["c", "x", "a"])).toEqual(["c", "a", "b"]);
  expect(ordered(["a", "b"], undefined)).toEqual(["a", "b"]);
  expect(byNumber(["0", "1", "10", "2", "-1.5"])).toEqual(["-1.5", "0", "1", "2", "10"]);
  expect(byNumber(["10", "2", "x"])).toEqual(["10", "2", "x"]);
});

test("things move to any place, and not beyond the ends", () => {
  expect(movedTo(["a", "b", "c"], 0, 2)).toEqual(["b", "c", "a"]);
  expect(movedTo(["a", "b", "c"], 2, -4)).toEqual(["c", "a", "b"]);
  expect(movedTo(["a", "b", "c"], 1, 1)).toEqual(["a", "b", "c"]);
});

// Words

test("every code of the library's catalogue has a title", () => {
  const codes = JSON.parse(python("frontend/tests/finding_codes.py")) as string[];
  expect(codes.length).toBeGreaterThan(20);
  const titles = codes.map(titleOf);
  expect(codes.filter((code) => titleOf(code) === code)).toEqual([]);
  expect(new Set(titles).size).toBe(codes.length);
});

test("breaks are said in a few words", () => {
  expect(breakWords({ break: "gap", by: "27h" })).toBe("27h later");
  expect(breakWords({ break: "gap", by: 2 })).toBe("a gap of 2");
  expect(breakWords({ break: "missing-next-state", by: null })).toBe("no next state");
  expect(breakWords({ break: "duplicate-time", by: null })).toBe("same time as another");
});

test("findings come by severity, and only some stop a verdict", () => {
  const all = [finding("no-effect", "note"), finding("gap", "warn")];
  const blocked = [...all, finding("action-constant", "blocks-verdict")];
  expect(sortedFindings(blocked).map((each) => each.code)).toEqual([
    "action-constant",
    "gap",
    "no-effect",
  ]);
  expect(findingsNote(all)).toContain("none");
  expect(findingsNote(blocked)).toContain("verdict");
});

test("screen readers hear how much is usable", () => {
  const found = { rows: 480, used: 440, sampled: null, findings: [] as Finding[] } as Validation;
  expect(usableSentence(found)).toBe("440 of 480 rows usable, no findings");
  const one = { ...found, findings: [finding("gap", "warn")] };
  expect(usableSentence(one)).toBe("440 of 480 rows usable, 1 finding");
  const begun = { ...found, sampled: 480 };
  expect(usableSentence(begun)).toBe("440 of the first 480 rows usable, no findings");
});

test("messages of the library become sentences", () => {
  expect(sentence("the log is empty")).toBe("The log is empty.");
  expect(sentence("Really?")).toBe("Really?");
});
