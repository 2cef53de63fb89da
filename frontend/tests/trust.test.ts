/** Trust: the verdict in words, which interval decides, and the order of the contenders. */

import { describe, expect, it } from "vitest";

import type {
  DraftSummary,
  Finding,
  Past,
  Preview,
  Project,
  Verdict,
  VerdictWord,
} from "../src/lib/types";
import { alarmWords, hidesMeans, optimumNote } from "../src/lib/verdict";
import { contenderOf, judgeOf, judgesFor, withDraft } from "../src/screens/trust/choice";
import {
  claimOf,
  decidingWords,
  differenceRows,
  reachOf,
} from "../src/screens/trust/claim";
import { betterAlternatives, contendersOf, valueRows } from "../src/screens/trust/contenders";
import { limitsOf } from "../src/screens/trust/limits";
import { binsFor, freeColumns } from "../src/screens/trust/probes";
import { stateRows } from "../src/screens/trust/states";
import { unfair } from "../src/screens/trust/unfair";

function interval(low: number, high: number, level = 0.9) {
  return { mean: (low + high) / 2, low, high, level };
}

function comparison(word: VerdictWord, low: number, high: number, level = 0.9) {
  return {
    reference: "",
    difference: interval(low, high),
    deciding: interval(low - (level > 0.9 ? 0.01 : 0), high + (level > 0.9 ? 0.01 : 0), level),
    by_the_log: word,
    verdict: word,
    chance_better: 0.5,
  };
}

function verdictOf(changes: Partial<Verdict> = {}): Verdict {
  return {
    sentence: "",
    values: {
      optimum: interval(0.5, 0.6),
      FPD_learn: interval(0.4, 0.5),
      TL_foresight: interval(0.45, 0.55),
      random: interval(0.2, 0.3),
      logged: interval(0.35, 0.45),
      new: interval(0.44, 0.54),
    },
    value_in_log: 0.4,
    matches_log: true,
    comparisons: {
      logged: comparison("better", 0.05, 0.12),
      random: comparison("better", 0.16, 0.27),
    },
    alternatives: { TL_foresight: comparison("worse", -0.12, -0.02) },
    alternatives_in_words: "",
    differences: {},
    verdict: { logged: "better", random: "better" },
    alarm: {
      raised: false,
      worse_than_logged: false,
      expected_difference: 0.2,
      limit: 0.003,
      harm: 0.03,
      chance_of_harm: 0,
    },
    objections: [],
    margin: 0.01,
    margin_choice: "",
    unit: "40 episodes, 440 records",
    support: {
      records: 440,
      similarity: 179,
      effective: 208,
      visits_well_seen: 1,
      well_seen: 5,
      states_by_extrapolation: [],
      episodes: 40,
    },
    measure: "share of time as wanted",
    horizon: 11,
    design_effect: 1,
    samples: 2000,
    samples_requested: 2000,
    visits: {},
    in_sample: {},
    estimates: {},
    overruled_by: [],
    warnings: [],
    ...changes,
  };
}

describe("the alarm", () => {
  const alarm = { raised: true, limit: 0.003, harm: 0.03, chance_of_harm: 0.33 };

  it("says what its chance is of", () => {
    const verdict = verdictOf({
      comparisons: { random: comparison("cannot tell", -0.08, 0.043) },
      alarm: { ...alarm, expected_difference: -0.015, worse_than_logged: false },
    });
    expect(alarmWords(verdict)).toBe(
      "It is expected to do worse than acting at random. " +
        "The chance that it loses more than 0.030 against random is 33 %.",
    );
  });

  it("names what was done where that is the reason", () => {
    const verdict = verdictOf({
      alarm: { ...alarm, expected_difference: 0.1, chance_of_harm: 0, worse_than_logged: true },
    });
    expect(alarmWords(verdict)).toContain("worse than what was done");
  });
});

describe("the claim", () => {
  it("is one of three words", () => {
    expect(claimOf(verdictOf()).title).toBe("Better than what was done");
    expect(claimOf(verdictOf()).because).toBe("and better than acting at random.");
    const worse = verdictOf({
      comparisons: {
        logged: comparison("worse", -0.2, -0.1),
        random: comparison("better", 0.1, 0.2),
      },
    });
    expect(claimOf(worse).title).toBe("Worse than what was done");
    expect(claimOf(worse).because).toBe("but better than acting at random.");
  });

  it("says why it cannot tell, and shows no mean", () => {
    const unclear = (low: number, high: number) => {
      return verdictOf({
        comparisons: {
          logged: comparison("cannot tell", low, high),
          random: comparison("better", 0.1, 0.2),
        },
      });
    };
    expect(claimOf(unclear(-0.1, 0.1)).word).toBe("cannot tell");
    expect(claimOf(unclear(-0.1, 0.1)).because).toContain("may be better or worse");
    expect(claimOf(unclear(0.005, 0.1)).because).toContain("not certainly by more than 0.010");
    expect(claimOf(unclear(-0.005, 0.005)).because).toContain("does not count");
    expect(hidesMeans(unclear(-0.1, 0.1))).toBe(true);
    expect(differenceRows(unclear(-0.1, 0.1)).map((row) => row.hideMean)).toEqual([true, false]);
    expect(valueRows(unclear(-0.1, 0.1), "TL").every((row) => row.hideMean)).toBe(true);
  });

  it("is overruled by a finding", () => {
    const overruled = verdictOf({ overruled_by: ["action-constant"] });
    const claim = claimOf(overruled);
    expect(claim.word).toBe("cannot tell");
    expect(claim.title).toBe("Better by the log, but not a fair comparison");
    expect(differenceRows(overruled).every((row) => row.hideMean)).toBe(true);
  });

  it("is none with fewer than 40 samples", () => {
    const few = verdictOf({ samples: 39 });
    expect(claimOf(few).word).toBe("cannot tell");
    expect(claimOf(few).title).toBe("No verdict from so few samples");
    expect(hidesMeans(few)).toBe(true);
    expect(claimOf(verdictOf({ samples: 40 })).word).toBe("better");
  });
});

describe("the interval that decides", () => {
  it("is the one shown where the levels are equal", () => {
    expect(differenceRows(verdictOf())[0]?.outer).toBeUndefined();
    expect(decidingWords(verdictOf())).toContain("The 90 % interval decides");
  });

  it("is a second, wider one where they differ", () => {
    const verdict = verdictOf({
      comparisons: {
        logged: comparison("better", 0.05, 0.12, 0.95),
        random: comparison("better", 0.1, 0.2),
      },
    });
    const outer = differenceRows(verdict)[0]?.outer;
    expect(outer?.[0]).toBeCloseTo(0.04);
    expect(outer?.[1]).toBeCloseTo(0.13);
    expect(decidingWords(verdict)).toContain("Thin line: the 95 % interval, which decides");
  });

  it("fits on an axis around zero", () => {
    expect(reachOf(differenceRows(verdictOf()))).toBe(0.4);
    const small = { label: "", mean: 0, low: -0.013, high: 0.009 };
    expect(reachOf([small])).toBe(0.02);

    // Policies that do the same still have an axis with numbers that differ.
    const none = { label: "", mean: 0, low: 0, high: 0 };
    expect(reachOf([none])).toBe(0.002);
  });
});

describe("the contenders", () => {
  it("begin with the policy and end with the bound of all", () => {
    expect(contendersOf(verdictOf(), "TL")).toEqual([
      "new",
      "logged",
      "random",
      "FPD_learn",
      "TL_foresight",
      "optimum",
    ]);
  });

  it("leave out the policy's own method", () => {
    expect(contendersOf(verdictOf(), "FPD_learn")).not.toContain("FPD_learn");
  });

  it("mark what is better by the log", () => {
    expect(betterAlternatives(verdictOf())).toEqual(["TL_foresight"]);
    const row = valueRows(verdictOf(), "TL").find((each) => each.label === "Planning");
    expect(row?.note).toBe("better, by the log");
  });

  it("has a best possible of fewer models", () => {
    expect(optimumNote(200)).toBe("knowing each model");
    expect(optimumNote(2000)).toBe("knowing each model, on about 200 of them");
  });
});

describe("what overrules and what is not said", () => {
  const finding: Finding = {
    code: "gap",
    severity: "warn",
    message: "156 gaps",
    fix: "",
    rows: 156,
    examples: [],
    remedies: [],
  };

  it("has a title and the message of the objection", () => {
    const verdict = verdictOf({
      overruled_by: ["little-support", "new-code"],
      objections: [{ code: "little-support", message: "only 3 % of the decisions were seen" }],
    });
    const [first, second] = unfair(verdict, []);
    expect(first?.title).toBe("Most of its decisions were hardly ever made.");
    expect(first?.text).toBe("Only 3 % of the decisions were seen.");
    expect(second?.title).toBe("This is not a fair comparison.");
  });

  it("warns of findings, and always of hidden causes", () => {
    const limits = limitsOf(verdictOf({ matches_log: false }), [finding], null, null);
    const warnings = limits.filter((limit) => limit.tone === "warn").map((limit) => limit.text);
    expect(warnings[0]).toBe("156 gaps.");
    expect(warnings[1]).toContain("In the log itself what was done had 0.400");
    expect(limits.some((limit) => limit.text.startsWith("Hidden causes"))).toBe(true);
  });

  it("says what the policy owes to what is known of the past", () => {
    const warningsOf = (past: Past | null, skill: number | null) => {
      const limits = limitsOf(verdictOf(), [], past, skill);
      return limits.filter((limit) => limit.remedy === "past").map((limit) => limit.text);
    };
    const past = { skilled: 0.2, opposed: 0.4, matters: true };
    expect(warningsOf(past, null)).toEqual([expect.stringContaining("up to 40 % of the policy's")]);
    expect(warningsOf({ ...past, matters: false }, null)).toEqual([]);
    expect(warningsOf(null, 0)).toEqual([expect.stringContaining("what somebody said")]);
  });
});

describe("what the address chooses", () => {
  function draft(id: string, goal: DraftSummary["goal"], changed: string): DraftSummary {
    const rest = { sentence: "", method: "TL", counts: "cnt_1", deployed: [] };
    return { id, name: id, goal, changed, ...rest };
  }
  const warm = draft("warm", { prefer: { warm: 1 } }, "2026-01-01T00:00:00Z");
  const cold = draft("cold", { prefer: { cold: 1 } }, "2026-01-02T00:00:00Z");
  const project = { counts: "cnt_1", drafts: [warm, cold] } as Project;

  it("is the draft named, else the newest", () => {
    expect(contenderOf({ d: "warm" }, project)?.draft?.id).toBe("warm");
    expect(contenderOf({}, project)?.draft?.id).toBe("cold");
    expect(contenderOf({ d: "gone" }, project)?.draft?.id).toBe("cold");
    expect(contenderOf({}, { ...project, drafts: [] })).toBeNull();
  });

  it("is the goal where it was changed since it was saved", () => {
    const query = { d: "warm", g: '{"prefer":{"warm":1,"cool":0.5}}' };
    expect(contenderOf(query, project)?.draft).toBeNull();
    const saved = { g: '{"prefer":{"warm":1}}' };
    expect(contenderOf(saved, project)?.draft?.id).toBe("warm");
    expect(contenderOf({ ...saved, m: "TL_foresight" }, project)?.draft).toBeNull();
  });

  it("is read back from the link to a draft", () => {
    const changes = withDraft(warm);
    const query = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== null));
    expect(contenderOf(query as Record<string, string>, project)?.draft?.id).toBe("warm");
  });

  it("has judges: every other goal, each once", () => {
    const again = draft("again", { prefer: { cold: 1 } }, "2026-01-03T00:00:00Z");
    const contender = contenderOf({ d: "warm" }, project)!;
    const judges = judgesFor(contender, [warm, cold, again]);
    expect(judges.map((judge) => judge.id)).toEqual(["cold"]);
    expect(judgeOf({ j: "cold" }, contender, [warm, cold])?.id).toBe("cold");
    expect(judgeOf({ j: "warm" }, contender, [warm, cold])).toBeNull();
  });
});

describe("columns to ask about", () => {
  it("are those without a role; long numeric ones are cut", () => {
    const column = (name: string, type: string, distinct: number) => ({ name, type, distinct });
    const columns = [
      column("room", "text", 5),
      column("did", "text", 3),
      column("day", "number", 40),
      column("age", "number", 60),
      column("sex", "text", 2),
      column("site", "text", 1),
    ];
    const mapping = { state: ["room"], action: ["did"], next_state: [], episode: "day" };
    const free = freeColumns({ columns, mapping } as unknown as Project);
    expect(free.map((each) => each.name)).toEqual(["age", "sex"]);
    expect(binsFor(free)).toEqual({ age: 3 });
  });
});

describe("state by state", () => {
  const policy = {
    rule: {
      states: ["old", "good", "lost"],
      actions: ["A", "B"],
      p: [[0.4, 0.6], [0.5, 0.5], [1, 0]],
    },
    support: { records: [10, 0, 0], similarity: [5, 0, 0] },
    ranges: null,
    visits: { after: [0.9, 0.1, 0] },
    weak: [2],
  } as unknown as Preview;

  it("leaves out states in which episodes end, and keeps those that the log never left", () => {
    expect(stateRows(policy).map((row) => row.state)).toEqual(["old", "lost"]);
    expect(stateRows(policy)[0]).toMatchObject({ action: "B", p: 0.6, time: 0.9 });
  });
});
