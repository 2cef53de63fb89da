/**
 * Whether the workbench answers.
 *
 * After a lost request the page asks `/livez` every two seconds. When the workbench is back,
 * everything that failed is asked again.
 */

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

async function retry(): Promise<void> {
  timer = undefined;
  try {
    const response = await fetch("/livez", { cache: "no-store" });
    if (response.ok) {
      heard(response.status);
      return;
    }
  } catch {
    // Still away.
  }
  lost();
}
