/**
 * The session of this page: a key in the address becomes a cookie, once.
 *
 * The answer has what every screen begins with (`early.ts`), so that a screen is there after a few
 * requests.
 */

import { formatAddress, parseAddress, type Step } from "./address.svelte";
import { get, path, post } from "./api";
import { forgetEarly, serveEarly } from "./early";
import { PROJECTS } from "./projects.svelte";
import type { Session } from "./types";

/** How long a first answer is used; a screen asks at once. */
const EARLY_MS = 3000;

/** Steps that show counts. */
const WITH_COUNTS: (Step | "home")[] = ["policy", "trust", "compare", "deploy", "watch"];

/** What this workbench is; null until the first answer. */
export const session: { value: Session | null } = $state({ value: null });

/** The key of an address such as `#key=abc`, or null. */
export function keyOf(hash: string): string | null {
  return /^#key=([\w-]+)$/.exec(hash)?.[1] ?? null;
}

/** Makes the first request; waits for it only where the address has a key. */
export async function openSession(): Promise<void> {
  const key = keyOf(location.hash);
  if (key === null) {
    startSession();
  } else {
    await exchange(key);
  }
}

/**
 * Exchanges the key of the address for a cookie and removes it from the address.
 *
 * The page then shows the log that the workbench was opened on, or the policy of a learner.
 */
async function exchange(key: string): Promise<void> {
  history.replaceState(null, "", "#/home");
  try {
    const answer = await post<Session>("/v1/session", { key });
    if (answer.project !== null) {
      history.replaceState(null, "", firstView(answer));
    }
    useEarly(Promise.resolve(answer), answer.project);
  } catch {
    // A key works once: an old one leads to the first request, whose answer says what to do.
  }
}

/** The view of what the workbench was opened on: of a learner there is a policy, and no log. */
export function firstView({ project, log, projects }: Pick<Session, "project" | "log" | "projects">) {
  const { origin } = projects.items.find((each) => each.id === project) ?? {};
  const draft = origin === "learner" ? log?.drafts[0] : undefined;
  return draft === undefined
    ? formatAddress({ log: project, step: "log", query: {} })
    : formatAddress({ log: project, step: "policy", query: { d: draft.id } });
}

/** Asks for all that the screen of the address begins with. */
function startSession(): void {
  const { log, step } = parseAddress(location.hash);
  const hasCounts = WITH_COUNTS.includes(step);
  const query = log === null ? "" : `?log=${encodeURIComponent(log)}&counts=${hasCounts}`;

  // What went wrong is said by the screen, whose own request fails in the same way.
  const answer = get<Session>(`/v1/session${query}`).catch(() => null);
  useEarly(answer, log);
}

/** Serves the first requests of a screen from the answer. */
function useEarly(answer: Promise<Session | null>, log: string | null): void {
  const received = answer.then(receive);
  serveEarly(PROJECTS, received.then((found) => found?.projects ?? null));
  if (log !== null) {
    serveEarly(path`/v1/projects/${log}`, received.then((found) => found?.log ?? null));
  }
}

function receive(found: Session | null): Session | null {
  session.value = found;
  if (found?.counts) {
    serveEarly(path`/v1/counts/${found.counts.id}`, Promise.resolve(found.counts));
  }
  setTimeout(forgetEarly, EARLY_MS);
  return found;
}
