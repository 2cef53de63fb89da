/**
 * The goal and the method of the address, while a slider moves and at rest.
 *
 * Browsers refuse to change the address at every frame, so a moving goal lives here and reaches the
 * address a few times a second, and in any case when the slider rests.
 *
 * What a method knows of the past it knows for one goal: with another goal, it is inferred again.
 */

import { onDestroy } from "svelte";

import { address, type Changes, update } from "../../lib/address.svelte";
import { goalOf, sameGoal, withGoal } from "../../lib/goal";
import { DEFAULT_METHOD, withMethod, withPastSkill } from "../../lib/methods";
import type { Goal } from "../../lib/types";

/** Time between two changes of the address: Safari allows 100 in 30 s, others more. */
const PAUSE_MS = 400;

export class Wish {
  #moving: Goal | null = $state.raw(null);
  // Text, so that another state or view of the address is not another goal.
  #text = $derived(address.query.g);
  #inAddress: Goal = $derived(goalOf(this.#text === undefined ? {} : { g: this.#text }));
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Whether a slider moves. */
  isMoving: boolean = $derived(this.#moving !== null);
  /** The goal that is shown. */
  goal: Goal = $derived(this.#moving ?? this.#inAddress);
  /** How the policy is learned. */
  method: string = $derived(this.#methodFor(this.goal));

  /** Made while a component is set up. */
  constructor() {
    onDestroy(() => {
      clearTimeout(this.#timer);
      this.#write();
    });
  }

  /** Another goal while a slider moves. */
  move(goal: Goal): void {
    this.#moving = goal;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#write();
    }, PAUSE_MS);
  }

  /** The slider rests: its goal is that of the address. */
  release(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#write()) {
      this.#moving = null;
    } else {
      this.#timer = setTimeout(() => this.release(), PAUSE_MS);
    }
  }

  /** Another goal by a click; Back returns to the one before. */
  change(goal: Goal): void {
    this.release();
    update(this.#changesTo(goal));
  }

  /** Writes the moving goal to the address; false where the browser wants a pause first. */
  #write(): boolean {
    if (this.#moving === null) {
      return true;
    }
    const changes = this.#changesTo(this.#moving);
    try {
      update(changes, { replace: true });
    } catch {
      return false;
    }
    return (address.query.g ?? null) === changes.g;
  }

  #changesTo(goal: Goal): Changes {
    return { ...withGoal(goal), ...withMethod(this.#methodFor(goal)) };
  }

  #methodFor(goal: Goal): string {
    const method = address.query.m ?? DEFAULT_METHOD;
    return sameGoal(goal, this.#inAddress) ? method : withPastSkill(method, null);
  }
}
