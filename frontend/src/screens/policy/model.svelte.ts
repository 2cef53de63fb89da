/**
 * The model of Goal & policy: a goal, the policy that follows, and what it rests on.
 *
 *     address -> goal -> rule, in the browser at once (TL)
 *                     -> preview of the service: rules of planners, where the time goes
 *                     -> verdict of the service
 *
 * Requests are latest-wins: one under way, the newest goal next. Once an answer belongs to the goal
 * that is shown, its numbers replace those of the browser.
 *
 * Arrays are flat, state by state, in the order of `states` and `actions`.
 */

import { untrack } from "svelte";

import { address, update } from "../../lib/address.svelte";
import { Answer } from "../../lib/answer.svelte";
import { get, path, Problem } from "../../lib/api";
import { Dependence } from "../../lib/dependence.svelte";
import { goalKey, wantsNothing } from "../../lib/goal";
import { canLearn, forbiddenOf, GoalProblem, nextIdeal } from "../../lib/ideal";
import { baseOf, PLANNING, SIMILARITY, withMethod } from "../../lib/methods";
import { preview } from "../../lib/preview";
import { projectOf, projects, refreshProjects } from "../../lib/projects.svelte";
import { behaviour, learn, type Learned } from "../../lib/tl";
import type { Counts, Goal, Overview, Past, Preview, Verdict } from "../../lib/types";
import { type Question, questionFor, type Shown, shownOf, weakStates } from "./answers";
import { Judging } from "./judging.svelte";
import { Wish } from "./wish.svelte";

export const METHODS = [SIMILARITY, PLANNING, "FPD_learn"] as const;

interface Local {
  learned: Learned | null;
  problem: Problem | null;
}

export class PolicyModel {
  #counts = new Answer((id: string, signal) => get<Counts>(path`/v1/counts/${id}`, { signal }));
  #preview = new Answer((question: Question, signal: AbortSignal) =>
    this.#fetch(question, signal),
  );
  /** The goal and how to change it. */
  readonly wish = new Wish();
  /** Whether it is better than what was done. */
  readonly judging = new Judging(this);
  #dependence = new Dependence(() => this.policy);

  // What there is.

  /** The log in the list of all logs; null until it is known. */
  project = $derived(projectOf(address.log) ?? null);
  counts: Counts | null = $derived(this.#counts.value);
  states: string[] = $derived(this.counts?.states.map((state) => state.key) ?? []);
  actions: string[] = $derived(this.counts?.actions ?? []);

  // What is wanted.

  goal: Goal = $derived(this.wish.goal);
  method: string = $derived(this.wish.method);
  /** Whether the policy comes from similarity, without a plan. */
  isSimilar: boolean = $derived(baseOf(this.method) === SIMILARITY);
  wantsNothing: boolean = $derived(wantsNothing(this.goal));
  /** Text that is equal for equal policies. */
  key: string = $derived(`${this.counts?.id} ${this.method} ${goalKey(this.goal)}`);

  /** The request for the policy; null where nothing is wanted. */
  policy: Question | null = $derived.by(() => {
    const isReady = this.counts !== null && !this.wantsNothing;
    return isReady ? questionFor(this.counts!, this.key, this.goal, this.method) : null;
  });

  // What follows: in the browser, and by the service.

  #good: Learned | null = null;
  #local: Local = $derived.by(() => this.#learn());
  #served: Shown | null = $derived.by(() => this.#answered());
  #isServed = $derived(this.#served?.key === this.key);
  #shown = $derived.by(() => this.#choose());

  /** Whether all of the policy shown belongs to the goal that is shown. */
  isCurrent: boolean = $derived(
    this.#isServed || (this.#local.learned !== null && this.#local.problem === null),
  );
  /** Probabilities [S, A]; null before anything is wanted. */
  rule: Float64Array | null = $derived.by(() => {
    if (this.wantsNothing) {
      return null;
    }
    return this.overview === null ? (this.#shown?.rule ?? null) : null;
  });
  /** What was done: [S, A]. */
  before: Float64Array = $derived.by(() => {
    const isHere = this.counts !== null && this.counts.transitions !== null;
    return isHere ? behaviour(this.counts!) : (this.#served?.before ?? new Float64Array());
  });
  support: { records: Float64Array; similarity: Float64Array } | null = $derived(
    this.wantsNothing ? null : (this.#shown?.support ?? null),
  );
  /** 1 where an action must not be taken: [S, A]. */
  forbidden: Uint8Array = $derived.by(() => this.#forbidden());
  /** How much each next state is wanted, as probabilities [S]; null where more than that counts. */
  ideal: Float64Array | null = $derived.by(() => {
    if (this.overview !== null) {
      return this.counts === null ? null : nextIdeal(this.goal, this.counts);
    }
    const served = this.#served?.ideal ?? null;
    return this.#isServed ? served : (this.#local.learned?.ideal.next ?? served);
  });
  /** A line on every state, where a page cannot hold the rule: then `rule` is null. */
  overview: Overview | null = $derived(this.wantsNothing ? null : (this.#served?.overview ?? null));
  /** Whether there is a policy to show. */
  hasPolicy: boolean = $derived(this.rule !== null || this.overview !== null);
  /** Indices of states whose rule rests on next to nothing. */
  weak: Set<number> = $derived(this.hasPolicy ? (this.#shown?.weak ?? new Set()) : new Set());
  /** Share of time in each state, before and by the policy; the newest that is known. */
  visits: { before: Float64Array; after: Float64Array } | null = $derived.by(() => {
    const visits = this.#served?.visits ?? null;
    const isWhole = visits?.before.length === this.states.length;
    return this.wantsNothing || !isWhole ? null : visits;
  });

  /** The newest verdict that is known; see `judging`. */
  verdict: Verdict | null = $derived(this.wantsNothing ? null : this.judging.verdict);

  /** How much the policy depends on who left the log, where its method infers that. */
  past: Past | null = $derived(this.#dependence.value);

  // How it goes.

  /** What is wrong with the goal, or with a request. */
  problem: Problem | null = $derived.by(() => {
    const isOfGoal = this.#local.problem !== null && !this.wantsNothing;
    if (isOfGoal) {
      return this.#local.problem;
    }
    if (this.wantsNothing) {
      return this.#counts.problem;
    }
    return this.#counts.problem ?? this.#preview.problem ?? this.judging.problem;
  });

  /** How long the newest preview has taken. */
  get phase() {
    return this.#counts.value === null ? this.#counts.phase : this.#preview.phase;
  }

  /** Milliseconds of the last computation, and where it was made. */
  took: { ms: number; where: "browser" | "service" } | null = $derived.by(() => {
    if (this.#local.learned !== null) {
      return { ms: this.#learnMs, where: "browser" };
    }
    return this.#isServed ? { ms: this.#planned.ms, where: "service" } : null;
  });
  #learnMs = 0;
  #missed: string | null = null;
  #planned = { key: "", ms: 0 };

  // What is looked at.

  state: string | null = $derived(address.query.s ?? null);
  action: string | null = $derived(address.query.a ?? null);

  /** Made while a component is set up. */
  constructor() {
    // Counts of the log, as soon as the list of logs is there.
    $effect(() => {
      const id = this.project?.counts ?? null;
      if (id !== null) {
        untrack(() => this.#counts.ask(id));
      }
    });

    // Where another tab has read the log in another way, these counts are gone: look once.
    $effect(() => {
      const id = this.project?.counts ?? null;
      if (this.problem?.slug === "not-found" && id !== this.#missed) {
        this.#missed = id;
        untrack(() => refreshProjects());
      }
    });

    // A preview of every new goal.
    $effect(() => {
      if (this.key !== "") {
        untrack(() => this.#ask());
      }
    });
  }

  /** Whether the list of logs is here and says that this log has no counts yet. */
  get lacksCounts(): boolean {
    return this.project !== null && this.project.counts === null;
  }

  /** Whether there is no such log. */
  get isUnknown(): boolean {
    return projects.items !== null && this.project === null;
  }

  // What a reader does.

  setMethod(method: string): void {
    this.wish.release();
    update(withMethod(method));
  }

  /** Chooses a state and an action to look at; null closes. */
  pick(state: string | null, action: string | null, options = { replace: false }): void {
    update({ s: state, a: action }, options);
  }

  /** Asks again what failed. */
  again(): void {
    if (this.counts === null) {
      this.#counts.again();
    } else {
      this.#ask();
    }
  }

  // Steps.

  /**
   * The policy to show: the browser's while a slider moves, so that nothing is painted twice; the
   * service's once it rests.
   */
  #choose(): Pick<Shown, "rule" | "support" | "weak"> | null {
    const learned = this.#local.learned;
    const isRestingAnswer = this.#isServed && !this.wish.isMoving;
    if (isRestingAnswer || learned === null) {
      return this.#served;
    }
    const { rule, support } = learned;
    return { rule, support, weak: weakStates(support.similarity, this.counts!) };
  }

  /** The policy by similarity, in the browser; of an impossible goal the one before. */
  #learn(): Local {
    const counts = this.counts;
    const isPossible =
      counts !== null && this.method === SIMILARITY && !this.wantsNothing && canLearn(this.goal, counts);
    if (!isPossible) {
      this.#good = null;
      return { learned: null, problem: null };
    }
    const start = performance.now();
    try {
      this.#good = learn(counts, this.goal);
      this.#learnMs = performance.now() - start;
      return { learned: this.#good, problem: null };
    } catch (error) {
      if (!(error instanceof GoalProblem)) {
        throw error;
      }
      const problem = new Problem("impossible-goal", error.message, "", [
        { pointer: `/goal/${error.part}` },
      ]);
      return { learned: this.#good, problem };
    }
  }

  /** An answer of the service, with the time that it took. */
  async #fetch(question: Question, signal: AbortSignal): Promise<Preview> {
    const answer = await preview(question.counts, question.request, signal);
    // A rule that is sent again was not computed again.
    const ms = answer.ms.rule ?? 0;
    const isAgain = this.#planned.key === question.key;
    this.#planned = { key: question.key, ms: isAgain ? Math.max(ms, this.#planned.ms) : ms };
    return answer;
  }

  /** The newest answer of the service, as arrays. */
  #answered(): Shown | null {
    const answer: Preview | null = this.#preview.value;
    const question = this.#preview.argument;
    const isOfThese = question !== null && question.counts === this.counts?.id;
    return answer === null || !isOfThese ? null : shownOf(answer, question.key);
  }

  #forbidden(): Uint8Array {
    if (this.#isServed && this.overview === null) {
      return this.#served!.forbidden;
    }
    try {
      return forbiddenOf(this.goal, this.states, this.actions);
    } catch {
      return this.#served?.forbidden ?? new Uint8Array(this.states.length * this.actions.length);
    }
  }

  /** Asks for the policy and for its verdict; of an impossible goal there is none. */
  #ask(): void {
    if (this.policy === null || this.#local.problem !== null) {
      this.#preview.stop();
      this.judging.stop();
      return;
    }
    this.#preview.ask(this.policy);
    this.judging.follow();
  }
}
