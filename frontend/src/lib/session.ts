/** The session of this page: a key in the address becomes a cookie, once. */

import { send } from "./api";

/** The key of an address such as `#key=abc`, or null. */
export function keyOf(hash: string): string | null {
  const match = /^#key=([A-Za-z0-9_-]+)(?:&to=(.*))?$/.exec(hash);
  return match?.[1] ?? null;
}

/** The view that the address names next to its key, as `#key=abc&to=/thermostat/log`. */
export function targetOf(hash: string): string {
  const match = /^#key=[A-Za-z0-9_-]+&to=(.*)$/.exec(hash);
  return `#${match?.[1] ?? "/home"}`;
}

/** Exchanges the key of the address for a cookie and removes it from the address. */
export async function openSession(): Promise<void> {
  const key = keyOf(location.hash);
  if (key === null) {
    return;
  }
  history.replaceState(null, "", targetOf(location.hash));
  try {
    await send("POST", "/v1/session", { key });
  } catch {
    // An old key: the first request says what to do.
  }
}
