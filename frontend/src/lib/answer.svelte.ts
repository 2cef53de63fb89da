/**
 * An answer of the service with its states, for a component.
 *
 *     const rows = new Answer((id: string, signal) => get<Rows>(path`/v1/projects/${id}/rows`, { signal }));
 *     $effect(() => rows.ask(address.log));
 *
 * The last good value stays while a newer one is awaited and after an error. `phase` follows the rule
 * of loading: nothing for 150 ms, then a skeleton, after 2 s words. `parts/Loading.svelte` shows all
 * of this.
 */

import { onDestroy, untrack } from "svelte";

import { asProblem, isAborted, type Problem } from "./api";
import { onReturn } from "./connection.svelte";
import { latest, type Latest } from "./latest";

const SKELETON_MS = 150;
const WORDS_MS = 2000;

export type Phase = "rest" | "quiet" | "skeleton" | "words";

export class Answer<Argument, Result> {
  /** The last good answer. */
  value: Result | null = $state.raw(null);
  /** The argument of the last good answer. */
  argument: Argument | null = $state.raw(null);
  /** What went wrong with the newest request; null once a request went well. */
  problem: Problem | null = $state.raw(null);
  /** How long the newest request has taken: at rest, under 150 ms, under 2 s, longer. */
  phase: Phase = $state("rest");

  #asked: { argument: Argument } | null = null;
  #latest: Latest<Argument>;
  #timers: ReturnType<typeof setTimeout>[] = [];

  /**
   * Made while a component is set up: requests end with the component.
   *
   * @param work - the request
   */
  constructor(work: (argument: Argument, signal: AbortSignal) => Promise<Result>) {
    this.#latest = latest(work, {
      receive: (result, argument, isNewest) => {
        this.value = result;
        this.argument = argument;
        this.problem = null;
        if (isNewest) {
          this.#rest();
        }
      },
      fail: (error) => {
        this.#rest();
        if (!isAborted(error)) {
          this.problem = asProblem(error);
        }
      },
    });
    const stop = onReturn(() => this.again());
    onDestroy(() => {
      stop();
      this.#latest.cancel();
      this.#rest();
    });
  }

  /** Asks; a newer question takes the place of one that waits. */
  ask(argument: Argument): void {
    this.#asked = { argument };

    // An effect that asks must not follow the phase, or each answer would ask again.
    const isAtRest = untrack(() => this.phase === "rest");
    if (isAtRest) {
      this.phase = "quiet";
      this.#timers = [
        setTimeout(() => (this.phase = "skeleton"), SKELETON_MS),
        setTimeout(() => (this.phase = "words"), WORDS_MS),
      ];
    }
    this.#latest.ask(argument);
  }

  /** Asks the last question again. */
  again(): void {
    if (this.#asked !== null) {
      this.ask(this.#asked.argument);
    }
  }

  /** Gives up the request under way; the last good value stays. */
  stop(): void {
    this.#latest.cancel();
    this.#rest();
  }

  /** Forgets everything, as when another log is opened. */
  clear(): void {
    this.stop();
    this.#asked = null;
    this.value = null;
    this.argument = null;
    this.problem = null;
  }

  #rest(): void {
    this.phase = "rest";
    this.#timers.forEach(clearTimeout);
    this.#timers = [];
  }
}
