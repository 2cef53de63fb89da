import { expect, test } from "vitest";

import { parseAddress } from "../src/lib/address.svelte";
import {
  goalName,
  goalOf,
  goalWords,
  labelName,
  linkFault,
  plainGoal,
  sameGoal,
  wantsNothing,
  wayOf,
  withGoal,
} from "../src/lib/goal";
import type { Goal } from "../src/lib/types";

const GOAL: Goal = { prefer: { comfortable: 1, warm: 0.5 }, forbid: [["hot", "heat"]] };

test("a goal survives the address, with labels of any kind", () => {
  const labels = { "a&b=c #1?": 1, "<img onerror>": 0.5, "שלום": 1, "": 0.25, "🙂": 1, 'x"y': 1 };
  const goal: Goal = { prefer: labels, forbid: [[null, "50 %"]], floor: 1e-3 };
  const { g } = withGoal(goal);
  const hash = `#/log/policy?${new URLSearchParams({ g: g! })}`;
  expect(goalOf(parseAddress(hash).query)).toEqual(goal);
});

test("no goal, no JSON and an empty goal are all nothing", () => {
  expect(goalOf({})).toEqual({});
  expect(goalOf({ g: "{not" })).toEqual({});
  expect(goalOf({ g: "[1, 2]" })).toEqual({});
  expect(goalOf({ g: "null" })).toEqual({});
  expect(withGoal({ prefer: { warm: 0 }, forbid: [] })).toEqual({ g: null });
});

test("a goal that only forbids wants nothing, but stays in the address", () => {
  const goal: Goal = { forbid: [["hot", "heat"]] };
  expect(wantsNothing(goal)).toBe(true);
  expect(goalOf({ g: withGoal(goal).g! })).toEqual(goal);
  expect(wantsNothing({ prefer_actions: { idle: 1 } })).toBe(false);
  expect(wantsNothing({ maximise: "reward" })).toBe(false);
});

test("goals that were saved elsewhere are read in every form", () => {
  expect(plainGoal({ prefer: "warm" })).toEqual({ prefer: { warm: 1 } });
  expect(plainGoal({ prefer: ["warm", "mild"] })).toEqual({ prefer: { warm: 1, mild: 1 } });
  expect(plainGoal({ prefer: [["warm", 2], [["a", true], 1]] })).toEqual({
    prefer: { warm: 2, '["a", true]': 1 },
  });
  expect(plainGoal({ forbid: [{ state: "hot", action: "heat" }, { action: "vent" }] })).toEqual({
    forbid: [
      ["hot", "heat"],
      [null, "vent"],
    ],
  });
  expect(plainGoal({ targets: [["wage", [["high", 1]]]], temperature: 1 })).toEqual({
    targets: { wage: { high: 1 } },
  });
});

test("goals are equal in any order", () => {
  const other: Goal = { forbid: [["hot", "heat"]], prefer: { warm: 0.5, comfortable: 1 } };
  expect(sameGoal(GOAL, other)).toBe(true);
  expect(sameGoal(GOAL, { ...other, floor: 0.01 })).toBe(false);
  expect(sameGoal(GOAL, { ...other, forbid: [] })).toBe(false);
});

test("a goal in words", () => {
  expect(goalWords(GOAL)).toBe("Be in comfortable (1) or warm (0.5); never heat in hot");
  expect(goalWords({ prefer: { a: 0.25, b: 0.25 } })).toBe("Be in a or b");
  expect(goalWords({})).toBe("Nothing is wanted yet");
  expect(goalWords({ forbid: [[null, "heat"]] })).toBe("Nothing is wanted yet; never heat");
  expect(goalWords({ targets: { wage: { high: 1 } } })).toBe("Have wage high");
  const many = Object.fromEntries([..."abcdefgh"].map((letter) => [letter, 1]));
  expect(goalWords({ prefer: many })).toBe("Be in a, b, c, d or 4 others");
  expect(goalName(GOAL)).toBe("comfortable or warm");
  expect(goalName({ prefer: { ["x".repeat(1000)]: 1 } })).toHaveLength(60);
});

test("labels for people", () => {
  expect(labelName("")).toBe("(empty)");
  expect(labelName('["cold", true, 3]')).toBe("cold · true · 3");
  expect(labelName("[not a list")).toBe("[not a list");
});

test("the way of a goal", () => {
  expect(wayOf({ reward: { a: 1 } })).toBe("reward");
  expect(wayOf({ prefer: {}, prefer_actions: { a: 1 } })).toBeNull();
});

test("a link that was cut short, or whose policy is gone, says so", () => {
  const drafts = [{ id: "dft_1" }];
  expect(linkFault({ g: '{"prefer":{"war' }, drafts)).toContain("cut short");
  expect(linkFault({ d: "dft_2" }, drafts)).toContain("deleted");

  // Nothing is said before the policies are known, nor of a goal that needs none of them.
  expect(linkFault({ d: "dft_2" }, null)).toBeNull();
  expect(linkFault({ d: "dft_1" }, drafts)).toBeNull();
  expect(linkFault({ g: withGoal(GOAL).g!, d: "dft_2" }, drafts)).toBeNull();
  expect(linkFault({}, drafts)).toBeNull();
});
