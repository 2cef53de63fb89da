/** What screen readers say politely: at most once a second, the newest message wins. */

const PAUSE_MS = 1000;

/** The text of the page's polite live region. */
export const announced: { text: string } = $state({ text: "" });

let waiting: string | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says something in the page's polite live region. */
export function announce(text: string): void {
  if (timer !== undefined) {
    waiting = text;
    return;
  }
  announced.text = text;
  timer = setTimeout(() => {
    timer = undefined;
    if (waiting !== null) {
      const next = waiting;
      waiting = null;
      announce(next);
    }
  }, PAUSE_MS);
}
