/**
 * A job of the service, followed by a component.
 *
 *     const judging = new FollowedJob<Verdict>();
 *     judging.start(path`/v1/drafts/${id}/evaluations`, { samples: 2000 });
 *
 * `job` is the newest look at it; its result stays when the service goes away. A job that was
 * started elsewhere is followed by its id.
 */

import { onDestroy } from "svelte";

import { asProblem, isAborted, post, type Problem } from "./api";
import { onReturn } from "./connection.svelte";
import { followJob, isOver, problemOf, stopJob } from "./jobs";
import type { Job } from "./types";

export class FollowedJob<Result> {
  job: Job<Result> | null = $state.raw(null);
  /** Why there is no job, or none to be seen. */
  problem: Problem | null = $state.raw(null);
  /** Whether a request to stop it is on its way. */
  isStopping = $state(false);
  /** Whether it is being started, queued or at work. */
  isRunning: boolean = $derived.by(() => {
    return this.job === null ? this.#isStarting : !isOver(this.job);
  });

  #isStarting = $state(false);
  #id: string | null = null;
  #controller: AbortController | null = null;
  #onEnd: (job: Job<Result>) => void;

  /**
   * Made while a component is set up: it is no longer followed when the component goes.
   *
   * @param onEnd - receives the job when it is over
   */
  constructor(onEnd: (job: Job<Result>) => void = () => undefined) {
    this.#onEnd = onEnd;
    const stopListening = onReturn(() => this.#again());
    onDestroy(() => {
      stopListening();
      this.#controller?.abort();
    });
  }

  /** Starts a job and follows it; returns its id, or null if there is none. */
  async start(address: string, body: unknown): Promise<string | null> {
    const controller = this.#begin();
    this.#isStarting = true;
    try {
      const job = await post<Job<Result>>(address, body, { signal: controller.signal });
      this.job = job;
      void this.#follow(job.id, controller);
      return job.id;
    } catch (error) {
      this.#fail(error, controller);
      return null;
    } finally {
      if (this.#controller === controller) {
        this.#isStarting = false;
      }
    }
  }

  /** Follows a job that there is already. */
  async follow(id: string): Promise<void> {
    await this.#follow(id, this.#begin());
  }

  /** Stops it; what it has found so far is kept. */
  async stop(): Promise<void> {
    if (this.#id === null) {
      return;
    }
    this.isStopping = true;
    try {
      await stopJob(this.#id);
    } catch (error) {
      this.isStopping = false;
      this.problem = asProblem(error);
    }
  }

  /** Looks at nothing any more; the job itself goes on. */
  forget(): void {
    this.#begin();
  }

  /** Gives up what was followed before. */
  #begin(): AbortController {
    this.#controller?.abort();
    this.#controller = new AbortController();
    this.#id = null;
    this.#isStarting = false;
    this.job = null;
    this.problem = null;
    this.isStopping = false;
    return this.#controller;
  }

  async #follow(id: string, controller: AbortController): Promise<void> {
    this.#id = id;
    try {
      const over = await followJob<Result>(id, (job) => (this.job = job), controller.signal);
      this.problem = problemOf(over);
      this.#onEnd(over);
    } catch (error) {
      this.#fail(error, controller);
    } finally {
      if (this.#controller === controller) {
        this.isStopping = false;
      }
    }
  }

  #fail(error: unknown, controller: AbortController): void {
    const isOfNow = this.#controller === controller;
    if (isOfNow && !isAborted(error)) {
      this.problem = asProblem(error);
    }
  }

  /** Looks again, as when the service is back. */
  #again(): void {
    const wasLost = this.problem?.slug === "unreachable";
    if (this.#id !== null && wasLost && this.#controller !== null) {
      this.problem = null;
      void this.#follow(this.#id, this.#controller);
    }
  }
}
