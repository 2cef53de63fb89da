/** The rules of several policies over the same states and actions. */

import { asProblem, path, post } from "../../lib/api";
import type { DraftSummary, Preview } from "../../lib/types";

export interface ShownRule {
  /** Probabilities, flat, state by state. */
  rule: Float64Array;
  /** 1 where the goal forbids an action. */
  forbidden: Uint8Array;
  /** For each state, 0 where the rule rests on next to nothing, 1 elsewhere. */
  supported: Uint8Array;
}

export interface Rules {
  states: string[];
  actions: string[];
  /** By the ids of the drafts. */
  of: Map<string, ShownRule>;
  /** What was done. */
  before: ShownRule;
}

/** How often a preview is requested again that another one of this session has replaced. */
const ATTEMPTS = 5;

/**
 * A function that loads the rules of drafts on the same counts.
 *
 * One request at a time, as the service takes previews; what was received before is not requested again.
 */
export function rulesLoader(): (drafts: DraftSummary[], signal: AbortSignal) => Promise<Rules> {
  const known = new Map<string, Preview>();
  return async (drafts, signal) => {
    const previews: Preview[] = [];
    for (const draft of drafts) {
      const key = JSON.stringify([draft.counts, draft.goal, draft.method]);
      const preview = known.get(key) ?? (await requested(draft, signal));
      known.set(key, preview);
      previews.push(preview);
    }
    return rulesOf(drafts, previews);
  };
}

function rulesOf(drafts: DraftSummary[], previews: Preview[]): Rules {
  const [first] = previews;
  if (first === undefined) {
    throw new Error("no policy to show");
  }
  const { states, actions } = first.rule;
  const of = new Map<string, ShownRule>();
  drafts.forEach((draft, place) => of.set(draft.id, shownRule(previews[place]!)));
  const before = {
    rule: Float64Array.from(first.behaviour.p.flat()),
    forbidden: new Uint8Array(states.length * actions.length),
    supported: new Uint8Array(states.length).fill(1),
  };
  return { states, actions, of, before };
}

async function requested(draft: DraftSummary, signal: AbortSignal): Promise<Preview> {
  const body = { goal: draft.goal, method: draft.method, want: { support: true } };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await post<Preview>(path`/v1/counts/${draft.counts}/preview`, body, { signal });
    } catch (error) {
      const isReplaced = asProblem(error).slug === "superseded";
      if (!isReplaced || attempt === ATTEMPTS) {
        throw error;
      }
    }
  }
}

function shownRule(preview: Preview): ShownRule {
  const numActions = preview.rule.actions.length;
  const forbidden = new Uint8Array(preview.rule.states.length * numActions);
  for (const [state, action] of preview.forbidden) {
    forbidden[state! * numActions + action!] = 1;
  }
  const supported = new Uint8Array(preview.rule.states.length).fill(1);
  for (const state of preview.weak) {
    supported[state!] = 0;
  }
  return { rule: Float64Array.from(preview.rule.p.flat()), forbidden, supported };
}
