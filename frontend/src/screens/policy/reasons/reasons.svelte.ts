/**
 * Where the reasons of a state come from.
 *
 * The service explains every method, with intervals, episodes and rows of the log. While a slider
 * moves, TL is explained in the browser, until the service has answered for the goal that is shown.
 * Rows do not depend on the goal: they are asked for once for each state and action.
 */

import { untrack } from "svelte";

import { Answer } from "../../../lib/answer.svelte";
import { evidenceOf, transitionsFrom } from "../../../lib/evidence";
import { canLearn } from "../../../lib/ideal";
import { baseOf, SIMILARITY } from "../../../lib/methods";
import { preview } from "../../../lib/preview";
import type { EvidenceRow, Explanation, PreviewRequest } from "../../../lib/types";
import type { PolicyModel } from "../model.svelte";
import { type Ribbon, ribbonsOf, withFewActions } from "./pieces";

/** What of the model the reasons need. */
export type Explained = Pick<
  PolicyModel,
  "counts" | "goal" | "method" | "key" | "states" | "actions" | "ideal" | "state" | "action"
>;

interface Question {
  counts: string;
  /** Names the policy and the state. */
  key: string;
  request: PreviewRequest;
}

/** Rows of the log behind each piece of evidence. */
const ROWS = 4;

/** Part of what is wanted most from which a next state is wanted at all. */
const LEAST_WANTED = 0.001;

/** Actions with ribbons of their own. */
const MOST_ACTIONS = 7;

export class Reasons {
  #model: Explained;
  #served = new Answer((question: Question, signal: AbortSignal) =>
    preview(question.counts, question.request, signal),
  );
  #rows = new Answer((question: Question, signal: AbortSignal) =>
    preview(question.counts, question.request, signal),
  );

  /** Made while a component is set up. */
  constructor(model: Explained) {
    this.#model = model;
    $effect(() => {
      const question = this.#question();
      if (question !== null) {
        untrack(() => this.#served.ask(question));
      }
    });
    $effect(() => {
      const { state, action, counts } = this.#model;
      const isKnown = this.#rowsKey(state, action) === untrack(() => this.#rows.argument?.key);
      if (state !== null && action !== null && counts !== null && !isKnown) {
        untrack(() => this.#askRows(counts.id, state, action));
      }
    });
  }

  #key = $derived.by(() => `${this.#model.key} ${this.#model.state}`);

  /** The reasons by TL while a slider moves; null where the service has to work them out. */
  #local: Explanation | null = $derived.by(() => {
    const { counts, goal, method, state } = this.#model;
    if (counts === null || state === null || method !== SIMILARITY || !canLearn(goal, counts)) {
      return null;
    }
    try {
      return evidenceOf(counts, goal, state);
    } catch {
      return null; // an impossible goal: the policy says so
    }
  });

  /** Whether the service has answered for what is shown. */
  isServed: boolean = $derived.by(() => this.#served.argument?.key === this.#key);

  /** The reasons to show; those of an older goal only until there are newer ones. */
  explanation: Explanation | null = $derived.by(() => {
    const served = this.#served.value?.explain ?? null;
    if (this.isServed) {
      return served;
    }
    const isOfState = served !== null && served.state === this.#model.state;
    const isOfMethod = served?.method === baseOf(this.#model.method);
    return this.#local ?? (isOfState && isOfMethod ? served : null);
  });

  /** Whether what is shown belongs to an older goal. */
  isOld: boolean = $derived.by(() => !this.isServed && this.#local === null);

  /** Episodes behind the action: they do not depend on the goal. */
  episodes: number | null = $derived.by(() => {
    const served = this.#served.value?.explain ?? null;
    const isOfState = served !== null && served.state === this.#model.state;
    return isOfState ? (served.actions[this.#model.action ?? ""]?.episodes ?? null) : null;
  });

  /** What was done in the state, by action; it does not depend on the goal. */
  before: number[] | null = $derived.by(() => {
    const served = this.#served.value;
    const isOfState = served !== null && served.rule.states[0] === this.#model.state;
    return isOfState ? (served.behaviour.p[0] ?? null) : null;
  });

  /** The explanation with rows of the log, once it is that of the action. */
  #withRows: Explanation | null = $derived.by(() => {
    const { state, action } = this.#model;
    const isOfThese = this.#rows.argument?.key === this.#rowsKey(state, action);
    return isOfThese ? (this.#rows.value?.explain ?? null) : null;
  });

  /** First rows of the log behind the action, by next state. */
  rows: Record<string, EvidenceRow[]> = $derived.by(() => {
    const evidence = this.#withRows?.actions[this.#model.action ?? ""]?.evidence ?? [];
    return Object.fromEntries(evidence.map((each) => [each.next_state, each.rows]));
  });

  /** Why there are none, where the log is no longer as it was. */
  withoutRows: string | null = $derived(this.#withRows?.without_rows ?? null);

  /** How much each next state is wanted, from 0 to 1, by key. */
  wanted: Record<string, number> = $derived.by(() => {
    const { ideal, states } = this.#model;
    if (ideal === null) {
      return {};
    }
    const most = ideal.reduce((largest, each) => Math.max(largest, each), 0);
    // Without a prototype: any label may be looked up.
    const wanted = Object.create(null) as Record<string, number>;
    states.forEach((key, index) => {
      const share = (ideal[index] ?? 0) / most;
      if (share >= LEAST_WANTED) {
        wanted[key] = share;
      }
    });
    return wanted;
  });

  /** What each action led to from the state. */
  ribbons: Ribbon[] = $derived.by(() => {
    const { counts, state, action, states, actions } = this.#model;
    const chosen = action ?? "";
    const transitions = counts?.transitions ?? null;
    if (transitions !== null && state !== null) {
      const leaving = transitionsFrom(transitions, states.indexOf(state));
      const all = leaving.map(([, done, next, records]) => {
        return { action: actions[done]!, next: states[next]!, records };
      });
      return withFewActions(all, chosen, MOST_ACTIONS);
    }
    return this.explanation === null ? [] : ribbonsOf(this.explanation, chosen, MOST_ACTIONS);
  });

  get phase() {
    return this.#served.phase;
  }

  get problem() {
    return this.#served.problem;
  }

  again(): void {
    this.#served.again();
  }

  #rowsKey(state: string | null, action: string | null): string {
    return JSON.stringify([this.#model.counts?.id, state, action]);
  }

  /** The action is named by the sentence only, so that another one needs no new request. */
  #question(): Question | null {
    const { counts, state, goal, method, actions } = this.#model;
    if (counts === null || state === null || actions[0] === undefined) {
      return null;
    }
    const isKnown = this.#model.states.includes(state);
    if (!isKnown || untrack(() => this.isServed && this.#served.problem === null)) {
      return null;
    }
    const want = {
      rule: { states: [state] },
      support: false,
      ideal: false,
      explain: [state, actions[0]] as [string, string],
    };
    return { counts: counts.id, key: this.#key, request: { goal, method, want } };
  }

  #askRows(counts: string, state: string, action: string): void {
    const want = {
      rule: { states: [state] },
      support: false,
      ideal: false,
      explain: [state, action] as [string, string],
      rows: ROWS,
    };
    const request: PreviewRequest = { goal: this.#model.goal, method: SIMILARITY, want };
    this.#rows.ask({ counts, key: this.#rowsKey(state, action), request });
  }
}
