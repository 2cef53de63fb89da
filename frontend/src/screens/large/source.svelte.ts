/**
 * Where the rows of a list come from: from the policy of the page, or, where a page cannot hold all of
 * it, from the service in pages as they come into view.
 */

import { untrack } from "svelte";

import { Answer } from "../../lib/answer.svelte";
import { preview } from "../../lib/preview";
import type { PreviewRequest } from "../../lib/types";
import type { PolicyModel } from "../policy/model.svelte";
import { type Lines, linesOf, linesOfOverview } from "./lines";

/** Probabilities of one state: by the policy, and as it was done. */
export interface Row {
  rule: ArrayLike<number>;
  before: ArrayLike<number>;
}

interface Question {
  key: string;
  counts: string;
  request: PreviewRequest;
}

/** States of one request: a few windows of a list. */
const PAGE = 120;

export class Source {
  #model: PolicyModel;
  #pages = new Answer((question: Question, signal: AbortSignal) =>
    preview(question.counts, question.request, signal),
  );
  /** Rows that the service sent, by state; of the policy with this key. */
  #rows = $state.raw({ key: "", of: new Map<string, Row>() });

  /** Made while a component is set up. */
  constructor(model: PolicyModel) {
    this.#model = model;
    $effect(() => {
      const answer = this.#pages.value;
      const key = this.#pages.argument?.key ?? "";
      if (answer !== null) {
        untrack(() => this.#take(answer.rule.states, answer.rule.p, answer.behaviour.p, key));
      }
    });
  }

  /** A line on every state; null before anything is wanted. */
  lines: Lines | null = $derived.by(() => {
    const { counts, rule, before, visits, weak, overview } = this.#model;
    if (counts === null) {
      return null;
    }
    if (rule !== null) {
      return linesOf(counts, { rule, before, visits: visits?.after ?? null, weak });
    }
    return overview === null ? null : linesOfOverview(overview);
  });

  /** The probabilities of a state; null while they are on their way. */
  row(place: number): Row | null {
    const { rule, before, actions, states } = this.#model;
    if (rule === null) {
      return this.#rows.of.get(states[place] ?? "") ?? null;
    }
    const start = place * actions.length;
    const end = start + actions.length;
    return { rule: rule.subarray(start, end), before: before.subarray(start, end) };
  }

  /** Asks for the rows of states that are not here; the first ones first. */
  need(places: number[]): void {
    const { overview, states, counts, goal, method, key } = this.#model;
    if (overview === null || counts === null) {
      return;
    }
    const isOfPolicy = this.#rows.key === key;
    const missing = places.filter((place) => {
      return !isOfPolicy || !this.#rows.of.has(states[place] ?? "");
    });
    if (missing.length === 0) {
      return;
    }
    const wanted = missing.slice(0, PAGE).map((place) => states[place]!);
    const want = { rule: { states: wanted }, support: false, ideal: false };
    const question = { key, counts: counts.id, request: { goal, method, want } };
    untrack(() => this.#pages.ask(question));
  }

  #take(states: string[], rule: number[][], before: number[][], key: string): void {
    const of = this.#rows.key === key ? new Map(this.#rows.of) : new Map<string, Row>();
    states.forEach((state, index) => of.set(state, { rule: rule[index]!, before: before[index]! }));
    this.#rows = { key, of };
  }
}
