/**
 * What happens to a policy, as it happens: Server-Sent Events, and polling where they fail.
 *
 * Browsers connect again by themselves after a lost connection; a refused one is tried again here.
 * A calm stream shows nothing to a page, so from time to time the page asks as well. `isStale` says
 * that neither was heard of for a while.
 */

import { path } from "../../lib/api";
import { connection } from "../../lib/connection.svelte";

const KINDS = ["decision", "outcome", "conflict", "alarm", "version", "settings", "gap"] as const;

/** The page asks this often even if the stream is calm, and more often while there is none. */
const CALM_MS = 15_000;
const POLL_MS = 3000;

/** Without a word for so long, what is shown is old: an open stream may be calm until it is asked. */
const STALE_MS = 4000;
const STALE_CALM_MS = CALM_MS + 5000;

/** Changes are shown at most this often: a busy policy has hundreds a second. */
const PACE_MS = 400;

export class PolicyStream {
  /** When the policy was heard of last, in milliseconds since 1970. */
  heardAt = $state(Date.now());
  isOpen = $state(false);
  /** The present, for words such as "3 min ago". */
  now = $state(Date.now());

  readonly silence = $derived(this.now - this.heardAt);
  readonly isStale = $derived.by(() => {
    const isFine = this.isOpen && connection.state === "ok";
    return this.silence > (isFine ? STALE_CALM_MS : STALE_MS);
  });

  #name: string;
  #onchange: () => void;
  #source: EventSource | null = null;
  #clock: ReturnType<typeof setInterval>;
  #due: ReturnType<typeof setTimeout> | undefined;
  #changedAt = 0;
  #askedAt = Date.now();

  /**
   * @param name - the policy
   * @param onchange - called when something has happened, and from time to time; it reports by
   *   `heard` that an answer came
   */
  constructor(name: string, onchange: () => void) {
    this.#name = name;
    this.#onchange = onchange;
    this.#connect();
    this.#clock = setInterval(() => this.#tick(), 1000);
  }

  /** The service has answered. */
  heard(): void {
    this.heardAt = Date.now();
  }

  close(): void {
    clearInterval(this.#clock);
    clearTimeout(this.#due);
    this.#source?.close();
  }

  #connect(): void {
    const source = new EventSource(path`/v1/policies/${this.#name}/events`);
    this.#source = source;
    source.onopen = () => {
      // What happened while there was no stream is not repeated.
      const wasLost = this.silence > STALE_MS;
      this.isOpen = true;
      this.heard();
      if (wasLost) {
        this.#change();
      }
    };
    source.onerror = () => {
      this.isOpen = false;
    };
    for (const kind of KINDS) {
      source.addEventListener(kind, () => {
        this.heard();
        this.#change();
      });
    }
  }

  /** Passes a change on, soon, and not too often. */
  #change(): void {
    if (this.#due !== undefined) {
      return;
    }
    const wait = Math.max(0, this.#changedAt + PACE_MS - Date.now());
    this.#due = setTimeout(() => {
      this.#due = undefined;
      this.#changedAt = Date.now();
      this.#askedAt = Date.now();
      this.#onchange();
    }, wait);
  }

  /** Every second: the clock, a stream that was refused, and polling. */
  #tick(): void {
    this.now = Date.now();
    const pause = this.isOpen ? CALM_MS : POLL_MS;
    const isDue = this.now - this.#askedAt >= pause;
    if (!isDue || document.visibilityState !== "visible") {
      return;
    }
    if (this.#source?.readyState === EventSource.CLOSED) {
      this.#connect();
    }
    this.#change();
  }
}
