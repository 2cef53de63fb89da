import { beforeAll, expect, test } from "vitest";

import { addingUp, evidenceOf } from "../src/lib/evidence";
import type { Counts, Explanation, Goal, Reason } from "../src/lib/types";
import { partsOf, piecesOf, ribbonsOf } from "../src/screens/policy/reasons/pieces";
import { python } from "./python";

interface Case {
  goal: Goal;
  explained: Explanation;
}

let tables: { counts: Counts; cases: Case[] }[] = [];

beforeAll(() => {
  tables = JSON.parse(python("frontend/tests/random_goals.py")) as typeof tables;
}, 120_000);

/** All reasons of all cases, the browser's with the library's. */
function pairs(): { ours: Explanation; theirs: Explanation; goal: string }[] {
  return tables.flatMap(({ counts, cases }) => {
    return cases.map(({ goal, explained }) => {
      const ours = evidenceOf(counts, goal, explained.state)!;
      return { ours, theirs: explained, goal: JSON.stringify(goal) };
    });
  });
}

/** Numbers of a reason by name. */
function numbersOf(reason: Reason): Record<string, number> {
  const numbers: Record<string, number> = { probability: reason.probability };
  for (const [name, share] of Object.entries(reason.parts)) {
    numbers[`part ${name}`] = share ?? 0;
  }
  for (const each of reason.evidence) {
    numbers[`records ${each.next_state}`] = each.records;
    numbers[`similarity ${each.next_state}`] = each.similarity;
    numbers[`share ${each.next_state}`] = each.share;
  }
  return numbers;
}

test("reasons in the browser equal pastwise's to 1e-9", () => {
  for (const { ours, theirs, goal } of pairs()) {
    expect(Object.keys(ours.actions).sort()).toEqual(Object.keys(theirs.actions).sort());
    for (const [action, reason] of Object.entries(theirs.actions)) {
      const mine = numbersOf(ours.actions[action]!);
      const expected = numbersOf(reason);
      expect(Object.keys(mine).sort(), goal).toEqual(Object.keys(expected).sort());
      for (const [name, value] of Object.entries(expected)) {
        expect(Math.abs(mine[name]! - value), `${goal} ${name}`).toBeLessThan(1e-9);
      }
      expect(ours.actions[action]!.is_allowed).toBe(reason.is_allowed);
    }
  }
});

test("what is shown adds up to the probability as shown, digit by digit", () => {
  for (const { theirs } of pairs()) {
    for (const reason of Object.values(theirs.actions)) {
      for (const most of [2, 6, Infinity]) {
        const table = partsOf(reason, most);
        const unit = 10 ** table.digits;
        const shown = table.lines.map((line) => Math.round(line.carries * unit));
        const total = shown.reduce((sum, each) => sum + each, 0);
        expect(total).toBe(Math.round(reason.probability * unit));
        const records = table.lines.reduce((sum, line) => sum + (line.records ?? 0), 0);
        expect(records).toBe(table.records);
      }
    }
  }
});

test("rounding loses less than a unit of every part", () => {
  const parts = [0.4545352, 0.1515117, 0.0000032, 0.0000001];
  expect(addingUp(parts)).toEqual({ digits: 3, parts: [0.455, 0.151, 0, 0], total: 0.606 });
  expect(addingUp([0.99998, 0.000005])).toMatchObject({ digits: 5, total: 0.99999 });
  expect(addingUp([0.000004])).toMatchObject({ digits: 6, total: 0.000004 });
  expect(addingUp([1])).toMatchObject({ digits: 3, total: 1 });
  expect(addingUp([])).toMatchObject({ digits: 3, parts: [], total: 0 });
});

test("pieces of the bar are the whole probability, but for slivers", () => {
  for (const { ours } of pairs()) {
    const pieces = piecesOf(ours, Object.keys(ours.actions), 0);
    expect(pieces.reduce((sum, each) => sum + each.share, 0)).toBeCloseTo(1, 9);
  }
});

test("ribbons keep the chosen action and all records", () => {
  for (const { ours } of pairs()) {
    const actions = Object.keys(ours.actions);
    const chosen = actions.at(-1)!;
    const all = ribbonsOf(ours, chosen, Infinity);
    const few = ribbonsOf(ours, chosen, 3);
    const totalOf = (ribbons: typeof all) => ribbons.reduce((sum, each) => sum + each.records, 0);
    expect(totalOf(few)).toBe(totalOf(all));
    expect(new Set(few.map((each) => each.action)).size).toBeLessThanOrEqual(3);
    const ofChosen = (ribbons: typeof all) => {
      return totalOf(ribbons.filter((each) => each.action === chosen));
    };
    expect(ofChosen(few)).toBe(ofChosen(all));
  }
});
