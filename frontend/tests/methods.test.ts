import { expect, test } from "vitest";

import {
  baseOf,
  methodName,
  pastSkillOf,
  withMethod,
  withPastSkill,
} from "../src/lib/methods";

test("a method is a name with hyper-parameters", () => {
  expect(baseOf("TL")).toBe("TL");
  expect(baseOf("TL_foresight(past_skill=-1)")).toBe("TL_foresight");
  expect(withMethod("TL")).toEqual({ m: null });
  expect(withMethod("TL(prior_count=5)")).toEqual({ m: "TL(prior_count=5)" });
});

test("what is known of the past comes and goes, and the rest stays", () => {
  expect(pastSkillOf("TL_foresight")).toBeNull();
  expect(pastSkillOf("TL_foresight(discount=0.9)")).toBeNull();
  expect(pastSkillOf("TL_foresight(discount=0.9, past_skill=-1)")).toBe(-1);
  expect(pastSkillOf("TL_foresight(past_skill=high)")).toBeNull();
  expect(withPastSkill("TL_foresight", 0)).toBe("TL_foresight(past_skill=0)");
  const changed = withPastSkill("TL_foresight(past_skill=1, discount=0.9)", -1);
  expect(changed).toBe("TL_foresight(discount=0.9, past_skill=-1)");
  expect(withPastSkill(changed, null)).toBe("TL_foresight(discount=0.9)");
  expect(withPastSkill("TL_foresight(past_skill=1)", null)).toBe("TL_foresight");
  expect(withPastSkill("TL", null)).toBe("TL");
});

test("methods have words, with what was chosen of them", () => {
  expect(methodName("TL_foresight")).toBe("Planning");
  expect(methodName("TL_foresight(past_skill=1)")).toBe("Planning (after experts)");
  expect(methodName("TL_foresight(past_skill=-1.0)")).toBe("Planning (after an opposed past)");
  expect(methodName("TL_foresight(past_skill=0.5)")).toBe("Planning (past_skill 0.5)");
  expect(methodName("TL(prior_count=5)")).toBe("Similarity (prior_count 5)");
  expect(methodName("own_method")).toBe("own_method");
});
