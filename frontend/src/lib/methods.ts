/**
 * Methods as the service names them: a name, with hyper-parameters as in `TL(prior_count=5)`.
 *
 * A page changes one of these: how good the past was for the goal, where somebody knows it.
 */

export const SIMILARITY = "TL";
export const PLANNING = "TL_foresight";

/** The method of an address without one. */
export const DEFAULT_METHOD = SIMILARITY;

const PAST_SKILL = "past_skill";

/** Methods by the words of the pages; the paper's names go to tooltips and exports. */
const NAMES: Record<string, string> = {
  TL: "Similarity",
  TL_foresight: "Planning",
  TL_explore: "Similarity, exploring",
  FPD_learn: "Model only",
};

/** What is known of the past, in words. */
const PASTS: Record<string, string> = {
  "1": "after experts",
  "0": "after an unrelated past",
  "-1": "after an opposed past",
};

type Parameter = [name: string, value: string];

/** The change of an address that chooses a method. */
export function withMethod(method: string): { m: string | null } {
  return { m: method === DEFAULT_METHOD ? null : method };
}

/** The name of a method without its hyper-parameters. */
export function baseOf(method: string): string {
  return method.split("(")[0]!;
}

/** Text that is equal for equal methods, in whatever order and form their numbers are written. */
export function methodKey(method: string): string {
  const written = parametersOf(method).map(([name, value]) => {
    return `${name}=${Number.isNaN(Number(value)) ? value : Number(value)}`;
  });
  return [baseOf(method), ...written.sort()].join(" ");
}

/** How good the past is taken to be for the goal, from -1 to 1; null where that is inferred. */
export function pastSkillOf(method: string): number | null {
  const found = parametersOf(method).find(([name]) => name === PAST_SKILL);
  return found === undefined || Number.isNaN(Number(found[1])) ? null : Number(found[1]);
}

/** The method with another skill of the past; null infers it. */
export function withPastSkill(method: string, skill: number | null): string {
  const others = parametersOf(method).filter(([name]) => name !== PAST_SKILL);
  const all: Parameter[] = skill === null ? others : [...others, [PAST_SKILL, String(skill)]];
  const written = all.map(([name, value]) => `${name}=${value}`).join(", ");
  return written === "" ? baseOf(method) : `${baseOf(method)}(${written})`;
}

/** A method in words, with what was chosen of it. */
export function methodName(method: string): string {
  const base = NAMES[baseOf(method)] ?? baseOf(method);
  const chosen = parametersOf(method).map(([name, value]) => {
    return (name === PAST_SKILL ? PASTS[String(Number(value))] : undefined) ?? `${name} ${value}`;
  });
  return chosen.length === 0 ? base : `${base} (${chosen.join(", ")})`;
}

function parametersOf(method: string): Parameter[] {
  const inner = method.slice(baseOf(method).length + 1, -1);
  const parts = inner.split(",").filter((part) => part.trim() !== "");
  return parts.map((part): Parameter => {
    const [name = "", value = ""] = part.split("=");
    return [name.trim(), value.trim()];
  });
}
