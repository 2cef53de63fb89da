/** A job of the service with its states, for a component; it is followed until it ends. */

import { onDestroy } from "svelte";

import { asProblem, isAborted, post, Problem } from "../../lib/api";
import { followJob, stopJob } from "../../lib/jobs";
import type { Job } from "../../lib/types";

export class RunningJob<Result> {
  job: Job<Result> | null = $state.raw(null);
  problem: Problem | null = $state.raw(null);
  isRunning = $state(false);

  #stopping = new AbortController();

  /** Made while a component is set up: it is no longer followed when the component ends. */
  constructor() {
    onDestroy(() => this.#stopping.abort());
  }

  /** Starts a job; returns it when it is over, or null if there is none. */
  async start(place: string, body: unknown): Promise<Job<Result> | null> {
    this.isRunning = true;
    this.problem = null;
    this.job = null;
    try {
      const started = await post<Job<Result>>(place, body);
      this.job = started;
      const over = await followJob<Result>(
        started.id,
        (job) => (this.job = job),
        this.#stopping.signal,
      );
      if (over.problem !== null) {
        const { title, detail } = over.problem as { title?: string; detail?: string };
        this.problem = new Problem("job-failed", title ?? "The job failed", detail ?? "");
      }
      return over;
    } catch (error) {
      if (!isAborted(error)) {
        this.problem = asProblem(error);
      }
      return null;
    } finally {
      this.isRunning = false;
    }
  }

  async stop(): Promise<void> {
    if (this.job !== null) {
      await stopJob(this.job.id);
    }
  }
}
