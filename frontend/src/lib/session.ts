/** The session of this page: a key in the address becomes a cookie, once. */

import { post } from "./api";
import type { Session } from "./types";

/** The key of an address such as `#key=abc`, or null. */
export function keyOf(hash: string): string | null {
  return /^#key=([\w-]+)$/.exec(hash)?.[1] ?? null;
}

/**
 * Exchanges the key of the address for a cookie and removes it from the address.
 *
 * The page then shows the log that the workbench was opened on.
 */
export async function openSession(): Promise<void> {
  const key = keyOf(location.hash);
  if (key === null) {
    return;
  }
  history.replaceState(null, "", "#/home");
  try {
    const session = await post<Session>("/v1/session", { key });
    if (session.project !== null) {
      history.replaceState(null, "", `#/${encodeURIComponent(session.project)}/log`);
    }
  } catch {
    // A key works once: an old one leads to the first request, whose answer says what to do.
  }
}
