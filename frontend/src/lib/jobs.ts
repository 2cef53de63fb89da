/** Jobs: long work of the service, followed until it ends. */

import { get, path, Problem, remove } from "./api";
import type { Job } from "./types";

/** How long to wait between two looks at a job: quick at first, then calmer. */
const FIRST_MS = 120;
const LAST_MS = 1000;

export function isOver(job: Job<unknown>): boolean {
  return job.state === "done" || job.state === "stopped" || job.state === "failed";
}

/**
 * Follows a job until it ends or the signal is aborted.
 *
 * @param onChange - receives the job after every look, the last time when it is over
 */
export async function followJob<Result>(
  id: string,
  onChange: (job: Job<Result>) => void,
  signal: AbortSignal,
): Promise<Job<Result>> {
  let pause = FIRST_MS;
  for (;;) {
    const job = await get<Job<Result>>(path`/v1/jobs/${id}`, { signal });
    onChange(job);
    if (isOver(job)) {
      return job;
    }
    await rest(pause, signal);
    pause = Math.min(LAST_MS, pause * 1.5);
  }
}

/** Stops a job; what it has found so far is kept. */
export async function stopJob(id: string): Promise<void> {
  await remove(path`/v1/jobs/${id}`);
}

/** The problem that ended a job; null where it ended well, or has not ended. */
export function problemOf(job: Job<unknown>): Problem | null {
  const described = job.problem;
  if (described === null) {
    return null;
  }
  const slug = String(described.type ?? "").replace(/^.*\//, "");
  const title = String(described.title ?? "The job failed");
  return new Problem(slug, title, String(described.detail ?? ""));
}

function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}
