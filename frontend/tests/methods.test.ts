import { expect, test } from "vitest";

import {
  baseOf,
  methodKey,
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

test("methods are the same in whatever order and form they are written", () => {
  const written = "TL_foresight(optimism=1, past_skill=-1)";
  expect(methodKey("TL_foresight(past_skill=-1.0, optimism=1.0)")).toBe(methodKey(written));
  expect(methodKey("TL()")).toBe(methodKey("TL"));
  expect(methodKey("TL_foresight(past_skill=1)")).not.toBe(methodKey("TL_foresight"));
  expect(methodKey("TL_foresight(optimism=1)")).not.toBe(methodKey("TL_foresight(optimism=2)"));
  expect(methodKey("TL(a=1)")).not.toBe(methodKey("TL_foresight(a=1)"));
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
