/**
 * The verdict on the policy that is shown: few samples while a slider moves, all when it rests.
 *
 * Verdicts take longer than rules, so they have requests of their own; one is under way at a time,
 * the newest goal is next.
 */

import { onDestroy } from "svelte";

import { Answer } from "../../lib/answer.svelte";
import { preview } from "../../lib/preview";
import type { Preview, Verdict } from "../../lib/types";
import { type Question, verdictFor } from "./answers";

/** How long a goal rests before its verdict is requested with all samples. */
const REST_MS = 400;

/** Models that a verdict is sampled from while a slider moves, and when it rests. */
const FEW_SAMPLES = 200;
const ALL_SAMPLES = 2000;

/** A verdict with few samples that takes longer than this would only delay the one with all. */
const QUICK_MS = 400;

/** Up to this many states all samples are quick enough for the first verdict. */
const FEW_STATES = 30;

/** Above this many states the verdict is computed on request. */
const MOST_STATES = 300;

/** The policy that a verdict is about. */
interface Subject {
  readonly states: string[];
  readonly key: string;
  readonly policy: Question | null;
}

export class Judging {
  #subject: Subject;
  #answer = new Answer((question: Question, signal: AbortSignal) => this.#fetch(question, signal));
  #found: { key: string; verdict: Verdict } | null = $state.raw(null);
  #restTimer: ReturnType<typeof setTimeout> | undefined;
  /** Milliseconds of the last verdict with few samples; 0 until there was one. */
  #fewMs = 0;
  #isFirst = true;

  /** Made while a component is set up. */
  constructor(subject: Subject) {
    this.#subject = subject;
    onDestroy(() => clearTimeout(this.#restTimer));
  }

  /** Whether a policy has been followed: a verdict that is not under way needs a request then. */
  isAsked = $state(false);

  /** Whether there are too many states for a verdict that nobody requested. */
  get isOnRequest(): boolean {
    return this.#subject.states.length > MOST_STATES;
  }

  /** Whether the verdict belongs to the policy that is shown. */
  get isCurrent(): boolean {
    return this.#found?.key === this.#subject.key;
  }

  /** The newest verdict; of many states only one on the policy that is shown. */
  get verdict(): Verdict | null {
    const isShown = this.isCurrent || !this.isOnRequest;
    return isShown ? (this.#found?.verdict ?? null) : null;
  }

  /** How long the newest request has taken. */
  get phase() {
    return this.#answer.phase;
  }

  get problem() {
    return this.#answer.problem;
  }

  /** Follows the policy that is shown. */
  follow(): void {
    clearTimeout(this.#restTimer);
    this.isAsked = true;
    if (this.isOnRequest) {
      this.#answer.stop();
      return;
    }
    const isWhole = this.#isFirst && this.#subject.states.length <= FEW_STATES;
    this.#isFirst = false;
    if (isWhole) {
      this.judge();
      return;
    }
    if (this.#fewMs <= QUICK_MS) {
      this.#ask(FEW_SAMPLES);
    }
    this.#restTimer = setTimeout(() => this.judge(), REST_MS);
  }

  /** Asks for the verdict with all samples. */
  judge(): void {
    this.#ask(ALL_SAMPLES);
  }

  /** Asks for nothing more, as where nothing is wanted. */
  stop(): void {
    clearTimeout(this.#restTimer);
    this.#answer.stop();
  }

  #ask(samples: number): void {
    const policy = this.#subject.policy;
    if (policy !== null) {
      this.#answer.ask(verdictFor(policy, samples));
    }
  }

  /** The verdict stays until there is a newer one. */
  async #fetch(question: Question, signal: AbortSignal): Promise<Preview> {
    const answer = await preview(question.counts, question.request, signal);
    if (answer.verdict !== null) {
      this.#found = { key: question.key, verdict: answer.verdict };
    }
    if (question.request.want?.verdict?.samples === FEW_SAMPLES) {
      this.#fewMs = answer.ms.verdict ?? 0;
    }
    return answer;
  }
}
