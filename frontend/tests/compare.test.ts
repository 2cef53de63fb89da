import { describe, expect, test } from "vitest";

import { freeName } from "../src/lib/drafts";
import type { DraftSummary, Goal, GoalComparison, Pair } from "../src/lib/types";
import { differing, farthest, rowsOf, totalVariation } from "../src/screens/compare/differences";
import { distinctGoals, goalDifferences } from "../src/screens/compare/goals";
import {
  chosenDrafts,
  firstSelection,
  goalsOf,
  goalToggled,
  idsOf,
  judgeOf,
  limitOf,
  nameOfGoal,
  toggled,
  unknownIds,
} from "../src/screens/compare/selection";
import { bestOf, isSeparated, joinedGroups, lanesOf } from "../src/screens/compare/separation";
import { hidesMean, hidesReferences, signOf } from "../src/screens/compare/signs";

const WARM: Goal = { prefer: { warm: 1 } };
const COMFORT: Goal = { prefer: { comfortable: 1, warm: 0.5 }, forbid: [["hot", "heat"]] };

function draft(id: string, changes: Partial<DraftSummary> = {}): DraftSummary {
  return {
    id,
    name: id,
    goal: WARM,
    sentence: "be in warm",
    method: "TL",
    counts: "new",
    changed: "2026-11-16T12:00:00Z",
    deployed: [],
    ...changes,
  };
}

function pair(a: string, b: string, low: number | null, high: number | null): Pair {
  return { a, b, mean: 0, low, high, verdict: "cannot tell" };
}

describe("where rules differ", () => {
  const first = [0.5, 0.5, 1, 0, 0.2, 0.8];
  const near = [0.55, 0.45, 0.9, 0.1, 0.2, 0.8];
  const far = [0.5, 0.5, 1, 0, 0.8, 0.2];

  test("total variation is half the sum of the differences", () => {
    expect(totalVariation(first, near, 0, 2)).toBeCloseTo(0.05);
    expect(totalVariation(first, far, 2, 2)).toBeCloseTo(0.6);
  });

  test("exactly the states beyond the limit from the first rule are shown", () => {
    const distances = farthest([first, near, far], 3, 2);
    expect(Array.from(distances, (each) => Number(each.toFixed(9)))).toEqual([0.05, 0.1, 0.6]);
    expect(differing(distances, 0.06)).toEqual([1, 2]);
    expect(differing(distances, 0.1 + 1e-9)).toEqual([2]);
    expect(differing([0.05, 0.0500001], 0.05)).toEqual([1]);
    expect(Array.from(farthest([first], 3, 2))).toEqual([0, 0, 0]);
  });

  test("rows of some states are taken in their order", () => {
    expect(Array.from(rowsOf(near, [2, 0], 2))).toEqual([0.2, 0.8, 0.55, 0.45]);
  });
});

describe("which policies are separated", () => {
  test("an interval that contains zero separates nothing", () => {
    expect(isSeparated(pair("a", "b", 0.01, 0.2))).toBe(true);
    expect(isSeparated(pair("a", "b", -0.2, -0.01))).toBe(true);
    expect(isSeparated(pair("a", "b", 0, 0.2))).toBe(false);
    expect(isSeparated(pair("a", "b", null, null))).toBe(false);
  });

  test("brackets join all of a group, of which no two are separated", () => {
    const pairs = [
      pair("b", "a", -0.1, 0.1),
      pair("b", "c", -0.1, 0.1),
      pair("a", "c", 0.1, 0.2),
      pair("a", "d", 0.1, 0.2),
      pair("b", "d", 0.1, 0.2),
      pair("d", "c", -0.1, 0.2),
    ];
    const groups = joinedGroups(["a", "b", "c", "d"], pairs);
    expect(groups).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ]);
    expect(lanesOf(groups)).toEqual([
      [
        [0, 1],
        [2, 3],
      ],
      [[1, 2]],
    ]);
  });

  test("a group need not be of neighbours, and unknown pairs are not joined", () => {
    expect(joinedGroups(["a", "b", "c"], [pair("a", "c", -1, 1)])).toEqual([[0, 2]]);
  });

  test("the best is the one with the largest value, of those that are known", () => {
    const interval = { low: 0, high: 1, level: 0.9 };
    const judged = {
      values: { a: { mean: 0.2, ...interval }, b: { mean: 0.4, ...interval }, logged: { mean: 0.9 } },
    } as unknown as GoalComparison;
    expect(bestOf(judged, ["a", "b", "c"])).toBe("b");
    expect(bestOf(judged, ["c"])).toBeNull();
  });

  test("an alarm comes before the verdict", () => {
    const judged = {
      verdicts: { a: "better", b: "worse" },
      alarms: ["b"],
    } as unknown as GoalComparison;
    expect(signOf(judged, "a")?.icon).toBe("up");
    expect(signOf(judged, "b")?.icon).toBe("alarm");
    expect(signOf(judged, "c")).toBeUndefined();
  });
});

test("means are left out where the log cannot tell", () => {
  const judged = (verdicts: Record<string, string>) => ({ verdicts }) as unknown as GoalComparison;
  const mixed = judged({ a: "better", b: "cannot tell" });
  expect(hidesMean(mixed, "a")).toBe(false);
  expect(hidesMean(mixed, "b")).toBe(true);
  expect(hidesReferences(mixed)).toBe(false);
  expect(hidesReferences(judged({ a: "cannot tell", b: "cannot tell" }))).toBe(true);
});

describe("the selection of the address", () => {
  const drafts = [draft("a"), draft("old", { counts: "old" }), draft("b"), draft("c")];

  test("names policies once", () => {
    expect(idsOf({})).toBeNull();
    expect(idsOf({ p: "a,b,,a,logged" })).toEqual(["a", "b", "logged"]);
    const chosen = chosenDrafts(["b", "logged", "gone", "a"], drafts);
    expect(chosen.map((each) => each.id)).toEqual(["b", "a"]);
  });

  test("begins with the open policy and those on the same counts", () => {
    expect(firstSelection(drafts, undefined, "new")).toEqual(["a", "b", "c"]);
    expect(firstSelection(drafts, "b", "new")).toEqual(["b", "a", "c"]);
    expect(firstSelection(drafts, "old", "new")).toEqual(["old"]);
    const many = Array.from({ length: 12 }, (_, place) => draft(`d${place}`));
    expect(firstSelection(many, "d0", "new")).toHaveLength(8);
    expect(firstSelection(many, "d0", "new").slice(0, 2)).toEqual(["d0", "d5"]);
  });

  test("policies are added and removed", () => {
    expect(toggled(["a", "b"], "c").p).toBe("a,b,c");
    expect(toggled(["a", "b"], "a").p).toBe("b");
  });

  test("goals are those of the address, or of the policies, each once", () => {
    const chosen = [draft("a"), draft("b", { goal: COMFORT }), draft("c")];
    expect(goalsOf({}, chosen)).toEqual([WARM, COMFORT]);
    const changes = goalToggled([WARM, COMFORT], WARM);
    expect(goalsOf({ goals: changes.goals! }, chosen)).toEqual([COMFORT]);
    expect(goalsOf({ goals: "no JSON" }, chosen)).toEqual([WARM, COMFORT]);
  });

  test("the goal of the intervals is that of the address if it is judged", () => {
    const by = JSON.stringify({ forbid: [["hot", "heat"]], prefer: { warm: 0.5, comfortable: 1 } });
    expect(judgeOf({ by }, [WARM, COMFORT])).toEqual(COMFORT);
    expect(judgeOf({ by }, [WARM])).toEqual(WARM);
    expect(judgeOf({}, [])).toBeUndefined();
  });

  test("a limit that is none is the default", () => {
    expect(limitOf({ tv: "0.2" })).toBe(0.2);
    expect(limitOf({ tv: "0" })).toBe(0);
    expect([limitOf({}), limitOf({ tv: "x" }), limitOf({ tv: "3" })]).toEqual([0.05, 0.05, 0.05]);
  });

  test("names are those of policies, and new ones are free", () => {
    expect(nameOfGoal(WARM, [draft("a", { name: "Warm rooms" })])).toBe("Warm rooms");
    expect(nameOfGoal(COMFORT, [draft("a")])).toBe("comfortable or warm");
    expect(freeName("a", [draft("a"), draft("a 2")])).toBe("a 3");
  });
});

describe("goals side by side", () => {
  test("only parts that differ are rows", () => {
    const other: Goal = { prefer: { comfortable: 1 }, forbid: [["hot", "heat"]], floor: 0.01 };
    const { rows, equal } = goalDifferences([COMFORT, other]);
    expect(rows).toEqual([
      { name: "Be in warm", texts: ["0.5", ""] },
      { name: "Smallest probability of a next state", texts: ["", "0.01"] },
    ]);
    expect(equal).toEqual(["Be in comfortable: 1", "Do heat in hot: never"]);
  });

  test("equal goals are one, in any order of their labels", () => {
    const same: Goal = { forbid: [["hot", "heat"]], prefer: { warm: 0.5, comfortable: 1 } };
    expect(distinctGoals([COMFORT, same, WARM])).toEqual([COMFORT, WARM]);
  });
});

test("only policies that are not saved are unknown", () => {
  const drafts = [draft("one"), draft("two")];
  expect(unknownIds(["two", "logged", "gone", "one"], drafts)).toEqual(["gone"]);
});
