/**
 * Latest wins: one request in flight, the newest argument next, nothing in between.
 *
 * While an answer is awaited, a new argument takes the place of the one that waits, so a steady drag
 * is answered as fast as the service can, and the last value is always sent. (A debounce would starve
 * the drag.) Answers arrive in the order of their arguments; one that belongs to a cancelled request
 * is dropped.
 */

export interface Latest<Argument> {
  /** Asks, or waits for the answer under way and asks then. */
  ask(argument: Argument): void;
  /** Forgets what waits, and drops the answer under way. */
  cancel(): void;
}

export interface Receiver<Argument, Result> {
  /**
   * Receives an answer.
   *
   * @param isNewest - false if a newer argument waits already: show it if nothing newer is shown
   */
  receive(result: Result, argument: Argument, isNewest: boolean): void;
  /** Receives an error of the newest argument; those of older ones are of no interest. */
  fail?(error: unknown, argument: Argument): void;
}

/**
 * Makes a function of one argument latest-wins.
 *
 * @param work - the request; its signal is aborted by `cancel`
 */
export function latest<Argument, Result>(
  work: (argument: Argument, signal: AbortSignal) => Promise<Result>,
  receiver: Receiver<Argument, Result>,
): Latest<Argument> {
  let next: { argument: Argument } | null = null;
  let running: AbortController | null = null;

  async function run(argument: Argument): Promise<void> {
    const controller = new AbortController();
    running = controller;
    try {
      const result = await work(argument, controller.signal);
      if (running === controller) {
        receiver.receive(result, argument, next === null);
      }
    } catch (error) {
      if (running === controller && next === null) {
        receiver.fail?.(error, argument);
      }
    }

    // A cancelled request has handed over already.
    if (running !== controller) {
      return;
    }
    running = null;
    startNext();
  }

  function startNext(): void {
    if (next !== null && running === null) {
      const { argument } = next;
      next = null;
      void run(argument);
    }
  }

  return {
    ask(argument) {
      next = { argument };
      startNext();
    },
    cancel() {
      next = null;
      const controller = running;
      running = null;
      controller?.abort();
    },
  };
}
