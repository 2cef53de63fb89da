/** Reasons as sentences. */

import { counted, int, listed, num, prob } from "../../../lib/format";
import { labelName } from "../../../lib/goal";
import type { Evidence, Reason } from "../../../lib/types";

/** Part of a probability below which a piece of evidence is not mentioned. */
const LEAST_SHARE = 0.01;

/** Next states that a sentence names. */
const MOST_NAMED = 3;

/** "15 led to comfortable", with the similarity where it is not that of what is wanted most. */
function targetWords(each: Evidence): string {
  const similarity = each.similarity / Math.max(1, each.records);
  const words = `${int(each.records)} led to ${labelName(each.next_state)}`;
  return similarity < 0.995 ? `${words} (similarity ${num(similarity, 2)} each)` : words;
}

/** Number of records of an action in a state. */
function recordsOf(reason: Reason): number {
  return reason.evidence.reduce((total, each) => total + each.records, 0);
}

/** "Rests on 32 records of heat in cool, from 27 episodes (day)." */
export function restsOn(
  reason: Reason,
  state: string,
  action: string,
  episodeColumn: string | null,
): string {
  const records = counted(recordsOf(reason), "record");
  const sentence = `Rests on ${records} of ${labelName(action)} in ${labelName(state)}`;
  if (reason.episodes === null || reason.episodes === undefined) {
    return `${sentence}.`;
  }
  const column = episodeColumn === null ? "" : ` (${episodeColumn})`;
  return `${sentence}, from ${counted(reason.episodes, "episode")}${column}.`;
}

/** Whether each record of a state is about as similar to the goal as any other. */
export function countAlike(reasons: Reason[]): boolean {
  const evidence = reasons.filter((reason) => reason.is_allowed).flatMap((each) => each.evidence);
  const ofOne = evidence
    .filter((each) => each.records > 0)
    .map((each) => each.similarity / each.records);
  return Math.max(...ofOne) <= 1.5 * Math.min(...ofOne);
}

/**
 * Why TL gives an action its probability.
 *
 * @param isWeak - whether nothing that was done in the state serves the goal
 * @param areAlike - whether its records count the same
 */
export function similaritySentence(
  reason: Reason,
  state: string,
  action: string,
  isWeak: boolean,
  areAlike = true,
): string {
  const done = labelName(action);
  const there = labelName(state);
  const records = recordsOf(reason);
  if (!reason.is_allowed) {
    return "Never, because the goal forbids it: exactly 0, no matter what the log has.";
  }
  if (isWeak) {
    const prior = reason.parts.prior ?? 0;
    const nothing = `Nothing that was done in ${there} led where you want to be.`;
    if (prior > reason.probability / 2) {
      return `${nothing} Its records count next to nothing, so the prior decides.`;
    }
    if (!areAlike) {
      return `${nothing} What came closest decides, although each record counts next to nothing.`;
    }
    const hasPrior = prior > LEAST_SHARE;
    const ofPrior = hasPrior ? ", moved towards equal chances by the prior" : "";
    return (
      `${nothing} Every record counts the same, next to nothing each, so the policy repeats what ` +
      `was done${ofPrior}.`
    );
  }
  if (records === 0) {
    return `${done} was never done in ${there}; only the prior speaks for it.`;
  }
  const carrying = reason.evidence.filter((each) => each.share >= LEAST_SHARE);
  const times = records === 1 ? "once" : `${int(records)} times`;
  if (carrying.length === 0) {
    const isServing = reason.evidence.some((each) => each.similarity >= 0.01 * each.records);
    return isServing
      ? `It was done ${times} and led where you want to be, but other actions did so more often.`
      : `It was done ${times} and never led where you want to be.`;
  }
  const named = carrying.slice(0, MOST_NAMED).map(targetWords);
  if (carrying.length > MOST_NAMED) {
    const rest = carrying.slice(MOST_NAMED);
    const number = rest.reduce((total, each) => total + each.records, 0);
    named.push(`${int(number)} led to ${counted(rest.length, "other state")}`);
  }
  return `It was done ${times} here: ${listed(named, named.length)}.`;
}

/** "0.46 to 0.74", or that both ends are next to nothing. */
export function rangeWords(low: number, high: number): string {
  if (high < 0.0005) {
    return "below .001";
  }
  if (low > 0.9995) {
    return "above .999";
  }
  return `${prob(low)} to ${prob(high)}`;
}
