/**
 * Requests to the service: JSON in, JSON out, problems as exceptions.
 *
 * Every failure is a `Problem`: one that the service describes (RFC 9457), or `unreachable` where
 * there was no answer. `lib/connection` hears of both kinds, so that the page can say that the
 * workbench has stopped, and go on when it is back.
 */

import { heard, lost } from "./connection.svelte";
import { forgetEarly, takeEarly } from "./early";

export interface ProblemPart {
  /** JSON pointer to the member of the request, such as `/goal/prefer/0`. */
  pointer?: string;
  code?: string;
  detail?: string;
  /** Names that may have been meant. */
  near?: string[];
}

/** What went wrong with a request. */
export class Problem extends Error {
  constructor(
    readonly slug: string,
    readonly title: string,
    readonly detail = "",
    readonly errors: ProblemPart[] = [],
    readonly status = 0,
    readonly requestId = "",
  ) {
    super(title);
    this.name = "Problem";
  }
}

export interface Options {
  signal?: AbortSignal;
  /** ETag that the thing must still have. */
  ifMatch?: string;
  headers?: Record<string, string>;
}

export interface Reply<T> {
  data: T;
  status: number;
  etag: string | null;
  location: string | null;
}

/** Any thrown value as a problem. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) {
    return error;
  }
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem("page-error", "The page made an error", detail);
}

/** Whether the frame says it already, above every screen: no answer, or no session. */
export function isSaidAbove(problem: Problem): boolean {
  return problem.slug === "unreachable" || problem.status === 401;
}

/** Whether a request was given up by the page itself. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Sends a request and returns the answer with its headers. */
export async function send<T>(
  method: string,
  path: string,
  body?: unknown,
  options: Options = {},
): Promise<Reply<T>> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  if (options.ifMatch !== undefined) {
    headers["If-Match"] = options.ifMatch;
  }

  if (method !== "GET") {
    forgetEarly();
  }

  // A file goes as it is, anything else as JSON; the service refuses other kinds.
  let content: BodyInit | undefined;
  if (body instanceof Blob) {
    headers["Content-Type"] = "application/octet-stream";
    content = body;
  } else if (method !== "GET") {
    headers["Content-Type"] = "application/json";
    content = body === undefined ? undefined : JSON.stringify(body);
  }

  const response = await reached(path, {
    method,
    headers,
    credentials: "same-origin",
    body: content ?? null,
    signal: options.signal ?? null,
  });
  if (!response.ok) {
    throw await problemOf(response);
  }
  const isEmpty = response.status === 204;
  return {
    data: (isEmpty ? undefined : await response.json()) as T,
    status: response.status,
    etag: response.headers.get("ETag"),
    location: response.headers.get("Location"),
  };
}

/** The response of the service, or the problem that there is none. */
async function reached(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (isAborted(error)) {
      throw error;
    }
    lost();
    throw new Problem("unreachable", "The workbench does not answer", String(error));
  }
  // A proxy in front answers in its own words when the service is away.
  const isAway = response.status === 502 || response.status === 504;
  if (isAway) {
    lost();
    throw new Problem("unreachable", "The workbench does not answer", "", [], response.status);
  }
  heard(response.status);
  return response;
}

/** The problem that a response describes. */
async function problemOf(response: Response): Promise<Problem> {
  let described: Record<string, unknown> = {};
  try {
    described = (await response.json()) as Record<string, unknown>;
  } catch {
    // Not JSON: the status has to do.
  }
  const type = String(described.type ?? "");
  return new Problem(
    type.replace(/^.*\//, "") || `status-${response.status}`,
    String(described.title ?? `The service answered ${response.status}`),
    String(described.detail ?? ""),
    (described.errors ?? []) as ProblemPart[],
    response.status,
    String(described.request_id ?? ""),
  );
}

export async function get<T>(path: string, options?: Options): Promise<T> {
  const early = await takeEarly(path);
  if (early !== undefined && early !== null) {
    return early as T;
  }
  return (await send<T>("GET", path, undefined, options)).data;
}

export async function post<T>(path: string, body?: unknown, options?: Options): Promise<T> {
  return (await send<T>("POST", path, body, options)).data;
}

export async function put<T>(path: string, body: unknown, options?: Options): Promise<T> {
  return (await send<T>("PUT", path, body, options)).data;
}

export async function patch<T>(path: string, body: unknown, options?: Options): Promise<T> {
  return (await send<T>("PATCH", path, body, options)).data;
}

export async function remove(path: string, options?: Options): Promise<void> {
  await send("DELETE", path, undefined, options);
}

/** A path with encoded parts and a query: ``path`/v1/drafts/${id}` ``. */
export function path(parts: TemplateStringsArray, ...values: (string | number)[]): string {
  return parts.reduce((text, part, index) => {
    const value = values[index - 1];
    const encoded = value === undefined ? "" : encodeURIComponent(value);
    return text + encoded + part;
  });
}
