/**
 * The slider's call: a policy for a goal, of which nothing is stored.
 *
 * The service works on one preview of a kind at a time and drops those that waited when a newer
 * one arrives (`superseded`). Two parts of a page may ask for different things, so a dropped
 * request is sent again; `latest` makes sure that each part has one request under way.
 */

import { path, post, Problem } from "./api";
import type { Preview, PreviewRequest } from "./types";

/** Pause before a dropped request is sent again: about what one preview takes. */
const PAUSE_MS = 30;

/** How often a dropped request is sent again. */
const MOST_TIMES = 20;

export async function preview(
  counts: string,
  request: PreviewRequest,
  signal: AbortSignal,
): Promise<Preview> {
  const address = path`/v1/counts/${counts}/preview`;
  for (let time = 0; ; time += 1) {
    try {
      return await post<Preview>(address, request, { signal });
    } catch (error) {
      const isDropped = error instanceof Problem && error.slug === "superseded";
      if (!isDropped || signal.aborted || time >= MOST_TIMES) {
        throw error;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
