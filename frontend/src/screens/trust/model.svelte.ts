/**
 * The model of Trust: a policy, the goal that judges it, and what the log says.
 *
 *     every policy   -> a preview: rule, support, visits
 *     small log      -> a second one has the verdict at once, of an unsaved goal as well
 *     saved policy   -> a job, which also asks the episodes themselves, and is kept with the policy
 *
 * A job that runs already, or a verdict that is kept, is found again through the policy.
 */

import { untrack } from "svelte";

import { address, update } from "../../lib/address.svelte";
import { Answer } from "../../lib/answer.svelte";
import { asProblem, get, path, type Problem } from "../../lib/api";
import { Dependence } from "../../lib/dependence.svelte";
import { freeName, saveDraft } from "../../lib/drafts";
import { FollowedJob } from "../../lib/followed.svelte";
import { goalName, sameGoal } from "../../lib/goal";
import { preview } from "../../lib/preview";
import { projectOf, refreshProjects } from "../../lib/projects.svelte";
import type { Draft, Goal, Job, Preview, Project, Verdict } from "../../lib/types";
import { FEWEST_SAMPLES } from "../../lib/verdict";
import {
  type Contender,
  contenderKey,
  contenderOf,
  judgeOf,
  judgesFor,
  withDraft,
} from "./choice";
import { policyOf, policyQuestion, type Question, SAMPLES, verdictQuestion } from "./questions";
import { speak } from "./speaking.svelte";

/** Up to this many states a preview has the verdict within a second or so. */
const AT_ONCE = 60;

/** Up to this many states a saved policy is judged without being asked to. */
const UNASKED = 300;

/** How often, and after how long, to look whether a verdict is among those of its policy. */
const LOOKS = 20;
const LOOK_MS = 250;

export class TrustModel {
  readonly project = new Answer((id: string, signal: AbortSignal) =>
    get<Project>(path`/v1/projects/${id}`, { signal }),
  );
  readonly preview = new Answer((question: Question, signal: AbortSignal) =>
    preview(question.counts, question.request, signal),
  );
  /** The verdict of a small log, apart from the policy: it takes longer. */
  readonly quick = new Answer((question: Question, signal: AbortSignal) =>
    preview(question.counts, question.request, signal),
  );
  readonly drafts = new Answer((id: string, signal: AbortSignal) =>
    get<Draft>(path`/v1/drafts/${id}`, { signal }),
  );
  readonly judging = new FollowedJob<Verdict>((job) => void this.#ended(job));
  /** How much the policy depends on who left the log. */
  readonly dependence = new Dependence(() => this.contender && policyOf(this.contender));

  // What is looked at.

  contender: Contender | null = $derived.by(() => {
    const project = this.project.value;
    return project === null ? null : contenderOf(address.query, project);
  });
  key: string = $derived(this.contender === null ? "" : contenderKey(this.contender));
  judge = $derived.by(() => {
    const contender = this.contender;
    return contender === null ? null : judgeOf(address.query, contender, this.#saved);
  });
  judges = $derived.by(() => {
    return this.contender === null ? [] : judgesFor(this.contender, this.#saved);
  });
  /** The saved policy with all of its verdicts; null for an unsaved goal. */
  draft: Draft | null = $derived.by(() => {
    const isThis = this.drafts.value?.id === this.contender?.draft?.id;
    return isThis ? this.drafts.value : null;
  });
  /** Number of states; null until it is known. */
  states: number | null = $derived.by(() => {
    const listed = projectOf(address.log)?.states ?? this.project.value?.validation?.states.length;
    return listed ?? this.policy?.rule.of ?? null;
  });

  // What the log says.

  /** The policy's rule and support; of the goal that is shown, or of the one before. */
  policy: Preview | null = $derived(this.preview.value);
  isPolicyCurrent: boolean = $derived(this.preview.argument?.key === this.key);
  /** Whether there are more states than a verdict can have; the limit is `policy.most_states`. */
  hasTooManyStates: boolean = $derived(
    this.policy !== null && this.states !== null && this.states > this.policy.most_states,
  );
  #newest: Verdict | null = $derived.by(() => this.#found());
  #last: Verdict | null = null;
  /** The newest verdict; see `isCurrent`. */
  verdict: Verdict | null = $derived.by(() => {
    this.#last = this.#newest ?? this.#last;
    return this.#last;
  });
  /** Whether the verdict belongs to what is looked at. */
  isCurrent: boolean = $derived(this.#newest !== null);

  /** What went wrong with saving. */
  saving: Problem | null = $state.raw(null);

  #taken = "";

  /** Made while a component is set up. */
  constructor() {
    $effect(() => {
      const id = address.log;
      if (id !== null) {
        untrack(() => this.project.ask(id));
      }
    });

    // The policy, and its verdict where that is quick.
    $effect(() => {
      const { contender, key, states } = this;
      if (contender !== null && states !== null) {
        const question = policyQuestion(contender, key, states);
        untrack(() => this.preview.ask(question));
      }
    });
    $effect(() => {
      const { contender, judge, isSmall } = this;
      if (contender !== null && isSmall) {
        const question = verdictQuestion(contender, this.#verdictKey, judge?.goal ?? null);
        untrack(() => this.quick.ask(question));
      }
    });

    // What was found out about a saved policy.
    $effect(() => {
      const id = this.contender?.draft?.id ?? null;
      untrack(() => this.#look(id));
    });
    $effect(() => {
      const isReady = this.draft !== null && this.states !== null && this.policy !== null;
      if (isReady) {
        const draft = this.draft!;
        const judge = this.judge?.goal ?? null;
        untrack(() => void this.#take(draft, judge));
      }
    });

    speak(this);
  }

  // What a reader does.

  /** Saves the goal of the address, so that it can be judged by a job. */
  async save(): Promise<void> {
    const contender = this.contender;
    if (contender === null) {
      return;
    }
    const { goal, method, counts } = contender;
    this.saving = null;
    try {
      const name = freeName(goalName(goal), this.project.value?.drafts ?? []);
      const draft = await saveDraft(counts, { name, goal, method });
      update(withDraft(draft));
      this.project.again();
    } catch (error) {
      this.saving = asProblem(error);
    }
  }

  /** Starts a job; each further one of a policy has random numbers of its own. */
  async judgeNow(samples = SAMPLES): Promise<void> {
    const draft = this.draft;
    if (draft === null) {
      return;
    }
    const judge = this.judge?.goal ?? null;
    const importance = judge === null && this.hasEpisodes;
    const seed = draft.verdicts.length;
    const where = path`/v1/drafts/${draft.id}/evaluations`;
    await this.judging.start(where, { judge, samples, seed, importance });

    // A log that was moved away can still be judged, without its episodes.
    if (importance && this.judging.problem?.slug === "nothing-to-learn") {
      await this.judging.start(where, { judge, samples, seed, importance: false });
    }
  }

  /** Whether the log has episodes in time that can be asked themselves. */
  get hasEpisodes(): boolean {
    const project = this.project.value;
    const isOfThese = project?.counts === this.contender?.counts;
    return isOfThese && project?.mapping?.episode != null && project.mapping.time != null;
  }

  /** Whether a preview has the verdict. */
  get isSmall(): boolean {
    return this.states !== null && this.states <= AT_ONCE;
  }

  // Steps.

  get #saved() {
    return this.project.value?.drafts ?? [];
  }

  get #verdictKey(): string {
    return `${this.key} ${this.judge?.id ?? ""}`;
  }

  /** The verdict on what is looked at: that of the job, or the one with more samples. */
  #found(): Verdict | null {
    const job = this.judging.job;
    if (job?.result) {
      return job.result;
    }
    const isOfThis = this.quick.argument?.key === this.#verdictKey;
    const quick = isOfThis ? (this.quick.value?.verdict ?? null) : null;
    return quick ?? (job?.partial as Verdict | null | undefined) ?? null;
  }

  #look(id: string | null): void {
    this.#taken = "";
    this.judging.forget();
    if (id !== null) {
      this.drafts.ask(id);
    }
  }

  /** Follows what runs, shows what is kept, or starts. */
  async #take(draft: Draft, judge: Goal | null): Promise<void> {
    const key = `${draft.id} ${JSON.stringify(judge)}`;
    if (key === this.#taken) {
      return;
    }
    this.#taken = key;
    this.judging.forget();

    const isBySame = (each: { goal: unknown }) => sameJudge(each.goal as Goal | null, judge);
    const running = draft.running.find(isBySame);
    const kept = draft.verdicts.findLast(isBySame);
    const id = running?.job ?? kept?.job;
    if (id !== undefined) {
      await this.judging.follow(id);
    }
    const isGone = this.judging.problem?.slug === "not-found";
    const isUnasked = !this.hasTooManyStates && this.states !== null && this.states <= UNASKED;
    if (this.#taken === key && isUnasked && (id === undefined || isGone)) {
      await this.judgeNow();
    }
  }

  /** A job is over: its verdict is among those of the policy in a moment. */
  async #ended(job: Job<Verdict>): Promise<void> {
    const isKept = (job.result?.samples ?? 0) >= FEWEST_SAMPLES;
    for (let look = 0; isKept && look < LOOKS; look += 1) {
      const isThere = this.draft?.verdicts.some((each) => each.job === job.id) ?? true;
      if (isThere) {
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      this.drafts.again();
    }
    refreshProjects();
  }
}

function sameJudge(one: Goal | null, other: Goal | null): boolean {
  if (one === null || other === null) {
    return one === other;
  }
  return sameGoal(one, other);
}
