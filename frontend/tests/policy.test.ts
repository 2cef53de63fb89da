import { describe, expect, test } from "vitest";

import type { Counts, Goal, Preview, Reason, Verdict } from "../src/lib/types";
import { questionFor, repeatsBefore, shownOf, verdictFor, weakStates } from "../src/screens/policy/answers";
import {
  allowing,
  fieldShares,
  forbidding,
  isForbidden,
  ledSharesOf,
  looksLikeCondition,
  partOf,
  rowsAfter,
  sharesOf,
  stepped,
  waysFor,
  weightOf,
  withTarget,
  withWay,
  withWeight,
} from "../src/screens/policy/edit";
import { countAlike, similaritySentence } from "../src/screens/policy/reasons/words";
import { timeRows } from "../src/screens/policy/time";
import { ofMeasure, rowsOf, wordsOf } from "../src/screens/policy/verdict";

const COUNTS = {
  states: [
    { key: '["cold", "home"]', records: 30, terminal: false },
    { key: '["warm", "home"]', records: 50, terminal: false },
    { key: '["warm", "away"]', records: 20, terminal: true },
  ],
  actions: ["heat", "idle"],
  fields: [
    { name: "room", values: ["cold", "warm"], of_state: [0, 1, 1] },
    { name: "people", values: ["away", "home"], of_state: [1, 1, 0] },
  ],
  weak: 1,
  has_rewards: false,
} as unknown as Counts;

describe("changes of a goal", () => {
  test("a weight of zero is no weight", () => {
    expect(withWeight({ a: 1 }, "b", 0.5)).toEqual({ a: 1, b: 0.5 });
    expect(withWeight({ a: 1, b: 0.5 }, "b", 0)).toEqual({ a: 1 });
    expect(withWeight({}, "a", 0.1 + 0.2)).toEqual({ a: 0.3 });
  });

  test("labels that every object has are labels like others", () => {
    expect(weightOf({}, "constructor")).toBe(0);
    expect(weightOf({}, "__proto__")).toBe(0);
    const weights = withWeight({}, "__proto__", 1);
    expect(weightOf(weights, "__proto__")).toBe(1);
    expect(Object.keys(withWeight(weights, "a", 1))).toEqual(["__proto__", "a"]);
  });

  test("a goal says what is wanted in one way", () => {
    const goal: Goal = { prefer: { a: 1 }, floor: 0.1, forbid: [[null, "heat"]] };
    expect(withWay(goal, "reward", { a: -2 })).toEqual({
      reward: { a: -2 },
      floor: 0.1,
      forbid: [[null, "heat"]],
    });
    expect(withTarget({ targets: { room: { warm: 1 } } }, "people", { home: 1 })).toEqual({
      targets: { room: { warm: 1 }, people: { home: 1 } },
    });
    expect(withTarget({ targets: { room: { warm: 1 } } }, "room", {})).toEqual({});
  });

  test("forbidding and allowing", () => {
    const goal = forbidding({}, "hot", "heat");
    expect(goal.forbid).toEqual([["hot", "heat"]]);
    expect(forbidding(goal, "hot", "heat")).toEqual(goal);
    expect(isForbidden(goal, "hot", "heat")).toBe(true);
    expect(isForbidden(goal, "cold", "heat")).toBe(false);
    expect(isForbidden(forbidding({}, null, "heat"), "cold", "heat")).toBe(true);
    expect(allowing(goal, "hot", "heat").forbid).toEqual([]);
    expect(allowing(goal, null, "heat").forbid).toEqual([["hot", "heat"]]);
  });

  test("steps of a slider with Shift", () => {
    expect(stepped(0.1, 1, true, 1)).toBe(0.25);
    expect(stepped(0.25, 1, true, 1)).toBe(0.5);
    expect(stepped(0.3, -1, true, 1)).toBe(0.25);
    expect(stepped(0.1, -1, true, 1)).toBe(0);
    expect(stepped(1, 1, true, 1)).toBe(1);
    expect(stepped(0.3, 1, false, 1)).toBe(0.35);
  });

  test("a row that a slider took to zero stays in its place", () => {
    const first = rowsAfter([], { a: 1, b: 1 }, new Set());
    const zero = rowsAfter(first, { b: 1 }, new Set(["a"]));
    expect(zero).toEqual(["a", "b"]);
    expect(rowsAfter(zero, { b: 1, a: 0.5 }, new Set(["a"]))).toEqual(["a", "b"]);
    expect(rowsAfter(zero, { b: 1 }, new Set())).toEqual(["b"]);
  });
});

describe("what a log offers", () => {
  test("shares of states and of values", () => {
    expect(sharesOf(COUNTS)).toEqual([0.3, 0.5, 0.2]);
    expect(fieldShares(COUNTS, COUNTS.fields[0]!)).toEqual([0.3, 0.7]);
    expect(fieldShares(COUNTS, COUNTS.fields[1]!)).toEqual([0.2, 0.8]);
  });

  test("what led to states where nothing is decided", () => {
    const transitions = [
      [0, 0, 1, 30, 30, 30],
      [1, 0, 2, 50, 50, 50],
      [1, 1, 2, 20, 20, 20],
    ] as Counts["transitions"];
    expect(ledSharesOf({ ...COUNTS, transitions })).toEqual([0, 0.3, 0.7]);
    expect(ledSharesOf({ ...COUNTS, transitions: null })).toBeNull();
  });

  test("ways to say what is wanted", () => {
    expect(waysFor(COUNTS, {}).map(({ value }) => value)).toEqual(["prefer", "targets", "reward"]);
    const rewarded = { ...COUNTS, fields: [], has_rewards: true };
    expect(waysFor(rewarded, {}).map(({ value }) => value)).toEqual([
      "prefer",
      "reward",
      "maximise",
    ]);
  });

  test("conditions on columns", () => {
    expect(looksLikeCondition("wage >= 2")).toBe(true);
    expect(looksLikeCondition("room in (cold, warm)")).toBe(true);
    expect(looksLikeCondition("warm")).toBe(false);
  });

  test("the part that a problem points to", () => {
    expect(partOf("/goal/forbid/0")).toBe("forbid");
    expect(partOf("/goal")).toBeNull();
    expect(partOf(undefined)).toBeNull();
  });
});

describe("answers of the service", () => {
  test("become flat arrays", () => {
    const answer = {
      rule: { states: ["a", "b"], actions: ["x", "y"], p: [[0.25, 0.75], [0, 1]], of: 2 },
      behaviour: { p: [[0.5, 0.5], [1, 0]] },
      support: { records: [3, 4], similarity: [1.5, 0], effective: [1, 0], prior_share: [0, 1] },
      visits: { before: [0.5, 0.5], after: [0.1, 0.9] },
      ideal: null,
      forbidden: [[1, 0]],
      weak: [1],
    } as unknown as Preview;
    const shown = shownOf(answer, "key");
    expect([...shown.rule]).toEqual([0.25, 0.75, 0, 1]);
    expect([...shown.forbidden]).toEqual([0, 0, 1, 0]);
    expect([...shown.support.similarity]).toEqual([1.5, 0]);
    expect([...shown.visits!.after]).toEqual([0.1, 0.9]);
    expect([...shown.weak]).toEqual([1]);
  });

  test("states of little similarity are weak, except for ends of episodes", () => {
    expect([...weakStates(Float64Array.of(0.5, 3, 0), COUNTS)]).toEqual([0]);
  });

  test("a verdict is requested apart from its policy", () => {
    const policy = questionFor(COUNTS, "k", { prefer: { a: 1 } }, "TL");
    expect(policy.request.want?.verdict).toBeUndefined();
    const question = verdictFor(policy, 200);
    expect(question.request.want?.verdict).toEqual({ samples: 200 });
    expect(question.request.goal).toEqual({ prefer: { a: 1 } });
  });

  test("of a system that a page cannot hold, a line on every state is requested", () => {
    const states = Array.from({ length: 1000 }, (_, index) => ({ key: String(index) }));
    const vast = { ...COUNTS, states, transitions: null } as unknown as Counts;
    expect(questionFor(vast, "k", {}, "TL").request.want).toMatchObject({
      rule: { first: 1 },
      overview: true,
    });
    expect(questionFor(COUNTS, "k", {}, "TL").request.want?.overview).toBeUndefined();
  });
});

describe("where the time goes", () => {
  const visits = {
    before: Float64Array.of(0.1, 0.2, 0.3, 0.4),
    after: Float64Array.of(0.7, 0.1, 0.1, 0.1),
  };

  test("states that are hardly wanted are shown as not wanted", () => {
    const rows = timeRows(["a", "b", "c", "d"], visits, Float64Array.of(1e-5, 0.6, 0.3, 1e-5));
    expect(rows.map((row) => row.wanted)).toEqual([0, 1, 0.5, 0]);
  });

  test("states in which episodes end take no time", () => {
    const none = { before: Float64Array.of(1, 0), after: Float64Array.of(1, 0) };
    expect(timeRows(["a", "b"], none, null, new Set(["b"])).map((row) => row.name)).toEqual(["a"]);
    expect(timeRows(["a", "b"], none, null)).toHaveLength(2);
  });

  test("of many states those with most time, and the others together", () => {
    const rows = timeRows(["a", "b", "c", "d"], visits, null, new Set(), 3);
    expect(rows.map((row) => row.name)).toEqual(["a", "d", "2 others"]);
    expect(rows[2]!.before).toBeCloseTo(0.5);
    expect(rows.reduce((sum, row) => sum + row.after, 0)).toBeCloseTo(1);
  });
});

describe("a verdict in words", () => {
  const value = { mean: 0.5, low: 0.4, high: 0.6, level: 0.9 };
  const verdict = (logged: string, random: string, overruled: string[] = []) =>
    ({
      values: { new: value, logged: value, random: value },
      comparisons: {
        logged: { verdict: logged, by_the_log: logged },
        random: { verdict: random, by_the_log: random },
      },
      samples: 2000,
      overruled_by: overruled,
    }) as unknown as Verdict;

  test("what is announced", () => {
    expect(wordsOf(verdict("better", "worse"))).toBe(
      "Better than what was done, worse than random.",
    );
    expect(wordsOf(verdict("cannot tell", "better"))).toBe(
      "Cannot tell against what was done, better than random.",
    );
    expect(wordsOf(verdict("better", "better", ["action-constant"]))).toBe(
      "Not a fair comparison. Better than what was done by the log.",
    );
  });

  test("no means where the log cannot tell", () => {
    expect(rowsOf(verdict("cannot tell", "better")).every((row) => row.hideMean)).toBe(true);
    expect(rowsOf(verdict("better", "better")).some((row) => row.hideMean)).toBe(false);
    const isUnfair = verdict("better", "better", ["action-constant"]);
    expect(rowsOf(isUnfair).every((row) => row.hideMean)).toBe(true);
    expect(rowsOf(verdict("better", "better")).map((row) => row.label)).toEqual([
      "This policy",
      "What was done",
      "At random",
    ]);
  });

  test("what a difference is of", () => {
    expect(ofMeasure("share of time as wanted")).toBe("of the time as wanted");
    expect(ofMeasure("mean reward")).toBe("mean reward");
  });
});

describe("reasons where nothing served the goal", () => {
  const reason = (similarity: number, prior: number): Reason => {
    const evidence = [{ next_state: "hi", records: 10, similarity, share: 0.8 - prior }];
    const parts = { records: 0.8 - prior, prior };
    return { probability: 0.8, is_allowed: true, evidence, parts } as unknown as Reason;
  };

  test("records that count the same repeat what was done", () => {
    expect(countAlike([reason(0.001, 0), reason(0.001, 0)])).toBe(true);
    expect(similaritySentence(reason(0.001, 0), "lo", "run", true)).toContain("repeats what was done");
  });

  test("records that count differently do not", () => {
    const areAlike = countAlike([reason(0.001, 0), reason(0.01, 0)]);
    expect(areAlike).toBe(false);
    const sentence = similaritySentence(reason(0.01, 0), "lo", "run", true, areAlike);
    expect(sentence).toContain("What came closest decides");
  });

  test("a prior that weighs more than the records decides", () => {
    const sentence = similaritySentence(reason(0.001, 0.5), "lo", "run", true);
    expect(sentence).toContain("the prior decides");
  });

  test("a rule repeats what was done but for small changes", () => {
    const before = Float64Array.of(0.5, 0.5, 0.1, 0.9);
    const rule = Float64Array.of(0.52, 0.48, 0.9, 0.1);
    expect(repeatsBefore(rule, before, [0], 2)).toBe(true);
    expect(repeatsBefore(rule, before, [0, 1], 2)).toBe(false);
  });
});
