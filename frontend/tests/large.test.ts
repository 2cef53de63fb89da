import { describe, expect, test } from "vitest";

import type { Counts } from "../src/lib/types";
import { factorsOf } from "../src/screens/large/factors";
import { type Lines, linesOf } from "../src/screens/large/lines";
import { type Choice, choiceOf, holding, listOf, withChoice } from "../src/screens/large/list";
import { pictureOf } from "../src/screens/large/overview";

const COUNTS = {
  states: [
    { key: '["cold", "day"]', records: 40, terminal: false },
    { key: '["cold", "night"]', records: 6, terminal: false },
    { key: '["hot", "day"]', records: 0, terminal: false },
    { key: '["hot", "night"]', records: 10, terminal: false },
    { key: "end", records: 0, terminal: true },
  ],
  actions: ["heat", "idle"],
  fields: [
    { name: "room", values: ["cold", "hot"], of_state: [0, 0, 1, 1, -1] },
    { name: "time", values: ["day", "night"], of_state: [0, 1, 0, 1, -1] },
  ],
  transitions: [
    [0, 0, 1, 30, 30, 30],
    [0, 1, 0, 10, 10, 10],
    [1, 0, 2, 2, 2, 2],
    [1, 1, 3, 4, 4, 4],
    [3, 1, 4, 10, 10, 10],
  ],
} as unknown as Counts;

const POLICY = {
  rule: Float64Array.of(0.75, 0.25, 0.9, 0.1, 0.5, 0.5, 0.2, 0.8, 0.5, 0.5),
  before: Float64Array.of(0.75, 0.25, 0.4, 0.6, 0.5, 0.5, 0, 1, 0.5, 0.5),
  visits: Float64Array.of(0.2, 0.5, 0, 0.3, 0),
  weak: new Set([2]),
};

const LINES: Lines = linesOf(COUNTS, POLICY);
const ALL: Choice = { sort: "order", text: "", only: [], facets: {} };

function shown(changes: Partial<Choice>): number[] {
  return listOf(COUNTS, LINES, { ...ALL, ...changes });
}

test("a line says what is done, how sure, how often seen, and what has changed", () => {
  expect([...Array.from(LINES.does)].slice(0, 4)).toEqual([0, 0, 0, 1]);
  expect(Array.from(LINES.seen).slice(0, 4)).toEqual([30, 2, 0, 10]);
  expect(Array.from(LINES.did).slice(0, 4)).toEqual([0, 1, -1, 1]);
  expect(LINES.change[0]).toBe(0);
  expect(LINES.change[1]).toBeCloseTo(0.5);
  expect(LINES.change[3]).toBeCloseTo(0.2);
});

describe("the list", () => {
  test("leaves out where an episode ends", () => {
    expect(shown({})).toEqual([0, 1, 2, 3]);
  });

  test("is ordered by visits, change, least seen", () => {
    expect(shown({ sort: "visits" })).toEqual([1, 3, 0, 2]);
    expect(shown({ sort: "change" })).toEqual([1, 3, 0, 2]);
    expect(shown({ sort: "seen" })).toEqual([2, 1, 3, 0]);
    const unknown = listOf(COUNTS, { ...LINES, visits: null }, { ...ALL, sort: "visits" });
    expect(unknown).toEqual([0, 1, 2, 3]);
  });

  test("finds names as they are shown and as they are written", () => {
    expect(shown({ text: " HOT · n" })).toEqual([3]);
    expect(shown({ text: '["hot"' })).toEqual([2, 3]);
    expect(shown({ text: "warm" })).toEqual([]);
  });

  test("filters add up", () => {
    expect(shown({ only: ["weak"] })).toEqual([2]);
    expect(shown({ only: ["changed"] })).toEqual([1, 3]);
    expect(shown({ only: ["reached"] })).toEqual([0, 1, 3]);
    expect(shown({ only: ["changed", "weak"] })).toEqual([]);
    expect(shown({ facets: { room: "hot" } })).toEqual([2, 3]);
    expect(shown({ facets: { room: "hot", time: "night" } })).toEqual([3]);
    expect(shown({ facets: { room: "nowhere" } })).toEqual([]);
    expect(shown({ facets: { nothing: "hot" } })).toEqual([0, 1, 2, 3]);
  });

  test("is in the address, and comes back from it", () => {
    const choice: Choice = {
      sort: "seen",
      text: "a&b=c",
      only: ["weak", "reached"],
      facets: { "room?": "x" },
    };
    const query = withChoice(choice, "visits") as Record<string, string>;
    expect(choiceOf(query, "visits")).toEqual(choice);
    expect(withChoice({ ...ALL, sort: "visits" }, "visits")).toEqual({
      o: null,
      q: null,
      only: null,
      f: null,
    });
    expect(choiceOf({ o: "nonsense", only: "x,weak", f: "[1" }, "order")).toEqual({
      ...ALL,
      only: ["weak"],
    });
  });
});

test("some states hold most of the visits", () => {
  expect(holding([0.1, 0.5, 0.4])).toBe(2);
  expect(holding([0, 0])).toBe(0);
});

describe("actions that are pairs", () => {
  test("are a matrix", () => {
    const actions = ["0·0", "0·1", "0·2", "1·0", "1·1", "1·2"];
    expect(factorsOf(actions)).toEqual({
      rows: ["0", "1"],
      columns: ["0", "1", "2"],
      at: [
        [0, 1, 2],
        [3, 4, 5],
      ],
    });
    expect(factorsOf(['["a", 1]', '["b", 1]', '["a", 2]', '["b", 2]'])?.at).toEqual([
      [0, 2],
      [1, 3],
    ]);
  });

  test("and others are not", () => {
    expect(factorsOf(["heat", "idle", "vent"])).toBeNull();
    expect(factorsOf(["0·0", "0·1", "1·0"])).toBeNull();
    expect(factorsOf(["a-1", "a-2"])).toBeNull();
    expect(factorsOf(["", "-", "--", "x"])).toBeNull();
  });
});

describe("the overview", () => {
  const rowOf = (place: number) => ({
    rule: POLICY.rule.subarray(2 * place, 2 * place + 2),
    before: POLICY.before.subarray(2 * place, 2 * place + 2),
  });

  test("has a row for each state, and marks what was seen rarely", () => {
    const picture = pictureOf([3, 1, 0], LINES, 2, rowOf);
    expect([picture.width, picture.height]).toEqual([2, 3]);
    expect([...picture.marks]).toEqual([0, 1, 0]);
    expect([...picture.rare]).toEqual([0, 0, 1, 0, 0, 0]);
    expect(picture.values[1]).toBeCloseTo(0.8);
    expect(picture.values[2]).toBeCloseTo(0.9);
  });

  test("puts states together where there are more than pixels, and loses no mark", () => {
    const list = Array.from({ length: 100_000 }, () => 0);
    list[77_777] = 1;
    const picture = pictureOf(list, LINES, 2, () => null);
    expect(picture.height).toBeLessThan(2000);
    expect(picture.marks.filter((each) => each > 0).length).toBe(1);
    expect(Math.abs(picture.values[0]! - 0.75)).toBeLessThan(0.02);
  });
});
