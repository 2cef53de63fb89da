/**
 * Answers that come with the first request of a page.
 *
 * Every screen begins with the list of logs, its log and often the counts of it. The service sends
 * them in one answer, from which the first request for each is served.
 */

const answers = new Map<string, Promise<unknown>>();

/** Serves the next request for a path from an answer; null stands for an answer without it. */
export function serveEarly(path: string, answer: Promise<unknown>): void {
  answers.set(path, answer);
}

/** The answer to a request if one is on its way; it is used once. */
export function takeEarly(path: string): Promise<unknown> | undefined {
  const answer = answers.get(path);
  answers.delete(path);
  return answer;
}

/** Forgets all answers, as after a change that they do not show. */
export function forgetEarly(): void {
  answers.clear();
}
