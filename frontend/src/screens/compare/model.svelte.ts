/**
 * What Compare shows: the policies and goals of the address, their rules, and the job that judges them.
 *
 * A job is started when policies or goals change. Its id goes to the address, so that the same link
 * in a new tab shows the same numbers without computing them again.
 */

import { onDestroy, untrack } from "svelte";

import { address, update } from "../../lib/address.svelte";
import { Answer } from "../../lib/answer.svelte";
import { asProblem, get, isAborted, path, post, type Problem } from "../../lib/api";
import { freeName, saveDraft } from "../../lib/drafts";
import { goalKey, goalName, goalOf, sameGoal, wantsNothing } from "../../lib/goal";
import { followJob, isOver, problemOf, stopJob } from "../../lib/jobs";
import { DEFAULT_METHOD, methodKey } from "../../lib/methods";
import type {
  ComparisonResult,
  DraftSummary,
  Goal,
  GoalComparison,
  Job,
  Project,
} from "../../lib/types";
import { type Rules, rulesLoader } from "./rules";
import {
  chosenDrafts,
  firstSelection,
  goalsOf,
  idsOf,
  judgeOf,
  LOGGED,
  MOST,
  unknownIds,
} from "./selection";

type ComparisonJob = Job<ComparisonResult>;

/** Above this many states a comparison takes minutes and is started by a button. */
const MANY_STATES = 300;

/** Sampled models: as the service has it, and fewer where each takes long. */
const SAMPLES = 1000;
const SAMPLES_OF_MANY = 200;

/** What a comparison is about. */
interface Question {
  key: string;
  drafts: DraftSummary[];
  goals: Goal[];
  samples: number;
}

export class CompareModel {
  readonly project: Answer<string, Project>;
  readonly rules: Answer<DraftSummary[], Rules>;

  /** The newest job, while it runs and after. */
  job: ComparisonJob | null = $state.raw(null);
  /** The newest numbers; those of an older question until the first of a newer one are there. */
  result: ComparisonResult | null = $state.raw(null);
  problem: Problem | null = $state.raw(null);
  isSaving = $state(false);

  /** Key of the question that the job answers. */
  #asked = $state("");
  #hasResumed = false;
  #following: AbortController | null = null;

  /** Made while a component is set up. */
  constructor() {
    this.project = new Answer((id, signal) => get<Project>(path`/v1/projects/${id}`, { signal }));
    this.rules = new Answer(rulesLoader());
    onDestroy(() => this.#following?.abort());
  }

  // The selection.

  readonly drafts = $derived.by(() => this.project.value?.drafts ?? []);
  readonly ids = $derived.by(() => idsOf(address.query) ?? this.#first);
  readonly chosen = $derived.by(() => chosenDrafts(this.ids, this.drafts));
  readonly withLogged = $derived.by(() => this.ids.includes(LOGGED));
  /** Policies of the address that are not saved here. */
  readonly unknown = $derived.by(() => unknownIds(this.ids, this.drafts));
  /** Whether the address names more policies than are compared. */
  readonly isCut = $derived.by(
    () => this.ids.length - this.unknown.length - (this.withLogged ? 1 : 0) > MOST,
  );
  readonly isFull = $derived.by(() => this.chosen.length >= MOST);
  readonly goals = $derived.by(() => goalsOf(address.query, this.chosen));
  readonly judge = $derived.by(() => judgeOf(address.query, this.goals));

  /** The policy of Goal & policy, if it is not saved. */
  readonly open: Pick<DraftSummary, "goal" | "method"> | null = $derived.by(() => {
    const goal = goalOf(address.query);
    const method = address.query.m ?? DEFAULT_METHOD;
    const isSaved = this.drafts.some(
      (draft) => methodKey(draft.method) === methodKey(method) && sameGoal(draft.goal, goal),
    );
    return isSaved || wantsNothing(goal) ? null : { goal, method };
  });

  get #first(): string[] {
    const project = this.project.value;
    if (project === null) {
      return [];
    }
    return firstSelection(project.drafts, address.query.d, project.counts);
  }

  readonly isMany = $derived.by(() => (this.rules.value?.states.length ?? 0) > MANY_STATES);

  /** Loads the rules of the chosen policies; those without any wait. */
  askForRules(): void {
    const chosen = untrack(() => this.chosen);
    if (chosen.length > 0) {
      this.rules.ask(chosen);
    }
  }

  // The numbers.

  readonly samples = $derived.by(() => (this.isMany ? SAMPLES_OF_MANY : SAMPLES));

  readonly isRunning = $derived.by(() => this.job !== null && !isOver(this.job));
  readonly judged = $derived.by(() => (this.judge ? this.judgedBy(this.judge) : undefined));

  /** What is known of a goal. */
  judgedBy(goal: Goal): GoalComparison | undefined {
    const key = goalKey(goal);
    return this.result?.goals.find((each) => goalKey(each.goal) === key);
  }

  readonly question: Question | null = $derived.by(() => {
    const drafts = this.chosen;
    if (drafts.length === 0 || this.rules.value === null) {
      return null;
    }
    const { samples } = this;
    const versions = drafts.map((draft) => [draft.id, draft.changed]);
    const key = JSON.stringify([versions, this.goals.map(goalKey), samples]);
    return { key, drafts, goals: this.goals, samples };
  });

  /** Whether the button has to be pressed before anything is computed. */
  readonly isWaiting = $derived.by(
    () => this.isMany && this.question !== null && this.question.key !== this.#asked,
  );

  /** Follows the address: to be called in an effect. */
  follow(): void {
    const { question } = this;
    if (question === null || question.key === this.#asked) {
      return;
    }
    const known = address.query.j;
    if (known !== undefined && !this.#hasResumed) {
      this.#hasResumed = true;
      untrack(() => void this.#resume(known, question));
    } else if (!this.isMany) {
      untrack(() => void this.start());
    }
  }

  /** Starts the job of the current question; one that runs for an older question is stopped. */
  async start(): Promise<void> {
    const { question } = this;
    if (question === null) {
      return;
    }
    const older = this.isRunning ? this.job : null;
    const signal = this.#begin(question);
    try {
      if (older !== null) {
        await stopJob(older.id);
      }
      const body = {
        drafts: question.drafts.map((draft) => draft.id),
        goals: question.goals,
        samples: question.samples,
      };
      const job = await post<ComparisonJob>("/v1/comparisons", body, { signal });
      update({ j: job.id }, { replace: true });
      await this.#hear(job.id, signal);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Ends the job; what it has found so far stays. */
  async stop(): Promise<void> {
    if (this.job !== null) {
      await stopJob(this.job.id);
    }
  }

  /** Takes over the job of the address, if it answers this question; starts one otherwise. */
  async #resume(id: string, question: Question): Promise<void> {
    const signal = this.#begin(question);
    try {
      const job = await get<ComparisonJob>(path`/v1/jobs/${id}`, { signal });
      if (answers(job, question)) {
        await this.#hear(id, signal);
        return;
      }
    } catch (error) {
      if (isAborted(error)) {
        return;
      }
    }
    if (this.isMany) {
      this.#asked = "";
    } else {
      await this.start();
    }
  }

  #begin(question: Question): AbortSignal {
    this.#asked = question.key;
    this.#following?.abort();
    this.#following = new AbortController();
    this.problem = null;
    return this.#following.signal;
  }

  async #hear(id: string, signal: AbortSignal): Promise<void> {
    await followJob<ComparisonResult>(
      id,
      (job) => {
        this.job = job;
        const numbers = job.result ?? job.partial;
        if (numbers?.goals?.length) {
          this.result = numbers as ComparisonResult;
        }
        this.problem = problemOf(job) ?? this.problem;
      },
      signal,
    );
  }

  #fail(error: unknown): void {
    if (isAborted(error)) {
      return;
    }
    this.problem = asProblem(error);
    this.job = null;

    // A policy was deleted elsewhere: what is saved now decides what is compared.
    if (this.problem.slug === "not-found") {
      this.project.again();
    }
  }

  // Other policies.

  /** Saves the policy of Goal & policy and adds it to the comparison. */
  saveOpen(): void {
    if (this.open !== null) {
      const { goal, method } = this.open;
      void this.save(freeName(goalName(goal), this.drafts), goal, method);
    }
  }

  /** Saves a policy and adds it to the comparison. */
  async save(name: string, goal: Goal, method: string): Promise<void> {
    const counts = this.chosen[0]?.counts ?? this.project.value?.counts;
    if (counts == null || this.isSaving) {
      return;
    }
    this.isSaving = true;
    try {
      const draft = await saveDraft(counts, { name, goal, method });
      update({ p: [...this.ids, draft.id].join(","), at: null });
      this.project.again();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.isSaving = false;
    }
  }
}

/** Whether a job judges the policies of a question, as they are now, by its goals. */
function answers(job: ComparisonJob, question: Question): boolean {
  const numbers = job.result ?? job.partial;
  if (job.kind !== "comparison" || numbers === null) {
    return false;
  }
  const drafts = question.drafts.map((draft) => draft.id);
  const isNewer = question.drafts.every((draft) => draft.changed <= job.created);
  const isComplete = job.state === "stopped" || !isOver(job);
  const goals = (numbers.goals ?? []).map((each) => goalKey(each.goal));
  const wanted = question.goals.map(goalKey).slice(0, isComplete ? goals.length : undefined);
  return (
    isNewer &&
    JSON.stringify(numbers.drafts) === JSON.stringify(drafts) &&
    JSON.stringify(goals) === JSON.stringify(wanted)
  );
}
