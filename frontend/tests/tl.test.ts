import { beforeAll, expect, test } from "vitest";

import { canLearn, GoalProblem, idealOf } from "../src/lib/ideal";
import { behaviour, learn } from "../src/lib/tl";
import type { Counts, Goal } from "../src/lib/types";
import { python } from "./python";

interface Case {
  goal: Goal;
  rule: number[];
  records: number[];
  similarity: number[];
  effective: number[];
  priorShare: number[];
}

let tables: { counts: Counts; cases: Case[] }[] = [];

beforeAll(() => {
  tables = JSON.parse(python("frontend/tests/random_goals.py")) as typeof tables;
}, 120_000);

/** The largest difference, relative to numbers above 1. */
function distance(ours: ArrayLike<number>, theirs: number[]): number {
  expect(ours.length).toBe(theirs.length);
  const each = theirs.map((value, index) => Math.abs(ours[index]! - value) / Math.max(1, value));
  return Math.max(0, ...each);
}

test("the rule and what it rests on equal pastwise's to 1e-9", () => {
  let number = 0;
  for (const { counts, cases } of tables) {
    for (const each of cases) {
      expect(canLearn(each.goal, counts)).toBe(true);
      const learned = learn(counts, each.goal)!;
      const goal = JSON.stringify(each.goal);
      expect(distance(learned.rule, each.rule), goal).toBeLessThan(1e-9);
      expect(distance(learned.support.records, each.records), goal).toBe(0);
      expect(distance(learned.support.similarity, each.similarity), goal).toBeLessThan(1e-9);
      expect(distance(learned.support.effective, each.effective), goal).toBeLessThan(1e-9);
      expect(distance(learned.support.priorShare, each.priorShare), goal).toBeLessThan(1e-9);
      number += 1;
    }
  }
  expect(number).toBe(200);
});

test("every way of stating a goal is among the numbers", () => {
  const goals = tables.flatMap((table) => table.cases.map((each) => each.goal));
  const ways = new Set(goals.flatMap(Object.keys));
  const all = ["prefer", "floor", "targets", "reward", "temperature", "prefer_actions", "forbid"];
  expect([...ways].sort()).toEqual(all.sort());
});

test("probabilities of a state sum to 1, and what is forbidden is exactly 0", () => {
  for (const { counts, cases } of tables) {
    const numActions = counts.actions.length;
    for (const { goal } of cases) {
      const { rule, ideal } = learn(counts, goal)!;
      for (let state = 0; state < counts.states.length; state += 1) {
        const row = rule.subarray(state * numActions, (state + 1) * numActions);
        expect(row.reduce((sum, each) => sum + each, 0)).toBeCloseTo(1, 12);
      }
      ideal.forbidden.forEach((isForbidden, cell) => {
        expect(rule[cell] === 0).toBe(isForbidden === 1);
      });
    }
  }
});

test("a goal that wants nothing has no rule; one that cannot be met says why", () => {
  const counts = tables[0]!.counts;
  const [first, second] = counts.states.map((state) => state.key);
  expect(learn(counts, { prefer: {} })).toBeNull();
  expect(learn(counts, { prefer: { [first!]: 0 } })).toBeNull();

  const everything = counts.actions.map((action): [string, string] => [second!, action]);
  const impossible: Goal[] = [
    { prefer: { [first!]: 1 }, forbid: everything },
    { prefer: { [first!]: 1 }, floor: 1 },
    { prefer: { nowhere: 1 } },
  ];
  for (const goal of impossible) {
    expect(() => idealOf(goal, counts)).toThrow(GoalProblem);
  }
});

test("what the browser cannot work out is left to the service", () => {
  const counts = tables[0]!.counts;
  const [first] = counts.states.map((state) => state.key);
  expect(canLearn({ prefer: { "wage >= 2": 1 } }, counts)).toBe(false);
  expect(canLearn({ maximise: "reward" }, counts)).toBe(false);
  expect(canLearn({ table: { [first!]: 1 } }, counts)).toBe(false);
  expect(canLearn({ reward: { [first!]: { "do 0": 1 } } }, counts)).toBe(false);
  expect(canLearn({ prefer: { [first!]: 1 } }, { ...counts, transitions: null })).toBe(false);
});

test("what was done sums to 1 in every state", () => {
  for (const { counts } of tables) {
    const shares = behaviour(counts);
    const total = shares.reduce((sum, each) => sum + each, 0);
    expect(total).toBeCloseTo(counts.states.length, 9);
  }
});
