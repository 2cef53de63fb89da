/**
 * A link is a view: all that a screen shows is in the part of the address after `#`.
 *
 *     #/home
 *     #/{log}/{step}?g={"prefer":{"warm":1}}&m=TL&s=cool&a=heat
 *
 * Screens read `address` and change it by `go` and `update`; Back and Forward come for free.
 * Common names of the query: `g` goal as compact JSON, `m` method, `d` draft, `s` state, `a` action,
 * `v` view, `p` policies. `g`, `m` and `d` go with the reader from step to step.
 */

export const STEPS = ["log", "policy", "trust", "compare", "deploy", "watch"] as const;

export type Step = (typeof STEPS)[number];

export type Query = Record<string, string>;

/** Changes of a query: null removes a name. */
export type Changes = Record<string, string | null>;

export interface Address {
  /** Id of the log; null on the home page. */
  log: string | null;
  step: Step | "home";
  query: Query;
}

/** Names of the query that stay when the step changes. */
const SHARED = ["g", "m", "d"];

const HOME: Address = { log: null, step: "home", query: {} };

/** The current address; reading it in a component makes the component follow it. */
export const address: Address = $state({ ...HOME });

function isStep(text: string | undefined): text is Step {
  return STEPS.some((step) => step === text);
}

/** Reads the part of an address after `#`; anything that is no view is the home page. */
export function parseAddress(hash: string): Address {
  const text = hash.replace(/^#/, "");
  const cut = text.indexOf("?");
  const path = cut < 0 ? text : text.slice(0, cut);
  const search = cut < 0 ? "" : text.slice(cut + 1);
  const [log, step] = path.replace(/^\//, "").split("/");
  if (log === undefined || log === "" || log === "home") {
    return { ...HOME, query: Object.fromEntries(new URLSearchParams(search)) };
  }
  return {
    log: decoded(log),
    step: isStep(step) ? step : "log",
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

/** A part of a path as it was before encoding; text with a stray % is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Writes an address as a link, `#/…`; `parseAddress` reads it back. */
export function formatAddress(given: Address): string {
  const path = given.log === null ? "#/home" : `#/${encodeURIComponent(given.log)}/${given.step}`;
  const search = new URLSearchParams(given.query).toString();
  return search === "" ? path : `${path}?${search}`;
}

/** A query after changes; null removes a name. */
export function changed(query: Query, changes: Changes): Query {
  const result = { ...query };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) {
      delete result[name];
    } else {
      result[name] = value;
    }
  }
  return result;
}

/** The part of the query that goes along to another step of the same log. */
export function sharedQuery(query: Query): Query {
  const kept = SHARED.filter((name) => name in query);
  return Object.fromEntries(kept.map((name) => [name, query[name] ?? ""]));
}

/** Link to a step of the current log, or of another one. */
export function linkTo(step: Step, changes: Changes = {}, log = address.log): string {
  const shared = log === address.log ? sharedQuery(address.query) : {};
  return formatAddress({ log, step, query: changed(shared, changes) });
}

/** Link to the current view with some changes. */
export function linkHere(changes: Changes): string {
  return formatAddress({ ...address, query: changed(address.query, changes) });
}

/** Goes to a step of the current log, or of another one; Back returns. */
export function go(step: Step | "home", changes: Changes = {}, log = address.log): void {
  const isHome = step === "home" || log === null;
  location.hash = isHome ? "#/home" : linkTo(step, changes, log);
}

/**
 * Changes the query of the current view.
 *
 * @param changes - names with values; null removes a name
 * @param options - `replace: true` while a slider moves; clicks add to the history
 */
export function update(changes: Changes, options: { replace: boolean } = { replace: false }): void {
  const link = linkHere(changes);
  if (link === formatAddress(address)) {
    return;
  }
  if (options.replace) {
    history.replaceState(null, "", link);
  } else {
    history.pushState(null, "", link);
  }
  follow();
}

/** Takes over the address of the window. */
function follow(): void {
  Object.assign(address, parseAddress(location.hash));
}

/** Follows the address of the window from now on. */
export function startAddress(): void {
  follow();
  window.addEventListener("hashchange", follow);
  window.addEventListener("popstate", follow);
}

/** Compact JSON of a value for the query, such as a goal. */
export function pack(value: unknown): string {
  return JSON.stringify(value);
}

/** A value of the query, or null where it is missing or no JSON. */
export function unpack<T>(text: string | undefined): T | null {
  if (text === undefined) {
    return null;
  }
  try {
    return JSON.parse(text) as T;
  } catch {
    return null;
  }
}
