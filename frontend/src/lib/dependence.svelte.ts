/**
 * How much a policy depends on who left the log: asked once the policy has rested for a moment.
 *
 * Only planning follows the example of the past as far as it was good, which somebody may know.
 */

import { Answer } from "./answer.svelte";
import { baseOf, pastSkillOf, PLANNING } from "./methods";
import { preview } from "./preview";
import type { Past, Preview, PreviewRequest, Wanted } from "./types";

/** How long a policy rests before this is requested: it takes two more plans. */
const REST_MS = 400;

/** A policy: the id of its counts, and a request for it. */
interface Subject {
  counts: string;
  request: PreviewRequest;
}

export class Dependence {
  #subjectOf: () => Subject | null;
  #answer = new Answer((subject: Subject, signal: AbortSignal) => ask(subject, signal));

  /**
   * Made while a component is set up.
   *
   * @param subjectOf - the policy that is shown; null where there is none
   */
  constructor(subjectOf: () => Subject | null) {
    this.#subjectOf = subjectOf;
    $effect(() => {
      const subject = this.#subject;
      if (subject === null) {
        this.#answer.stop();
        return;
      }
      const timer = setTimeout(() => this.#answer.ask(subject), REST_MS);
      return () => clearTimeout(timer);
    });
  }

  /** The policy, if its method infers how good the past was. */
  #subject: Subject | null = $derived.by(() => {
    const subject = this.#subjectOf();
    return subject !== null && infersPast(subject.request.method) ? subject : null;
  });

  /** The newest answer on these counts, of the goal before while there is none yet. */
  value: Past | null = $derived.by(() => {
    const isOfThese = this.#answer.argument?.counts === this.#subject?.counts;
    return isOfThese ? (this.#answer.value?.past ?? null) : null;
  });
}

async function ask(subject: Subject, signal: AbortSignal): Promise<Preview> {
  const want: Wanted = { rule: { first: 1 }, support: false, ideal: false, past: true };
  return await preview(subject.counts, { ...subject.request, want }, signal);
}

function infersPast(method: string): boolean {
  return baseOf(method) === PLANNING && pastSkillOf(method) === null;
}
