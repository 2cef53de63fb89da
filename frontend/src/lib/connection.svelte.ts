/**
 * Whether the workbench answers.
 *
 * A page that is looked at asks `/livez` every five seconds, and every two after a lost request.
 * When the workbench is back, everything that failed is asked again.
 */

const LOOK_MS = 5000;
const RETRY_MS = 2000;

/**
 * `ok`, `lost` (no answer), or `closed` (this page has no session, or its session has ended).
 */
export const connection: { state: "ok" | "lost" | "closed" } = $state({ state: "ok" });

const waiting = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Calls back each time the workbench is back; returns how to stop that. */
export function onReturn(callback: () => void): () => void {
  waiting.add(callback);
  return () => waiting.delete(callback);
}

/** There was no answer. */
export function lost(): void {
  connection.state = "lost";
  timer ??= setTimeout(retry, RETRY_MS);
}

/** There was an answer with this status. */
export function heard(status: number): void {
  const wasLost = connection.state === "lost";
  connection.state = status === 401 ? "closed" : "ok";
  clearTimeout(timer);
  timer = undefined;
  if (wasLost && connection.state === "ok") {
    for (const callback of [...waiting]) {
      callback();
    }
  }
}

/** Looks from time to time whether the workbench is there; returns how to stop that. */
export function watchConnection(): () => void {
  const interval = setInterval(() => {
    if (connection.state === "ok" && document.visibilityState === "visible") {
      void look();
    }
  }, LOOK_MS);
  return () => clearInterval(interval);
}

async function retry(): Promise<void> {
  timer = undefined;
  await look();
}

async function look(): Promise<void> {
  // A single request may get lost on a busy machine.
  const isThere = (await answers()) || (await answers());
  if (!isThere) {
    lost();
  } else if (connection.state === "lost") {
    heard(200);
  }
}

async function answers(): Promise<boolean> {
  try {
    const response = await fetch("/livez", { cache: "no-store" });
    await response.text(); // an answer that nobody reads keeps its connection
    return response.ok;
  } catch {
    return false;
  }
}
