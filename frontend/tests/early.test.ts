import { afterEach, expect, test, vi } from "vitest";

import { get, post } from "../src/lib/api";
import { forgetEarly, serveEarly } from "../src/lib/early";

function served(body: unknown): ReturnType<typeof vi.fn> {
  const fetched = vi.fn(async () => new Response(JSON.stringify(body)));
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

afterEach(() => {
  vi.unstubAllGlobals();
  forgetEarly();
});

test("an early answer serves one request", async () => {
  const fetched = served("new");
  serveEarly("/v1/projects/room", Promise.resolve("early"));
  expect(await get("/v1/projects/room")).toBe("early");
  expect(fetched).not.toHaveBeenCalled();
  expect(await get("/v1/projects/room")).toBe("new");
});

test("a request is made where the first answer lacks it", async () => {
  served("new");
  serveEarly("/v1/projects/room", Promise.resolve(null));
  expect(await get("/v1/projects/room")).toBe("new");
});

test("a change makes early answers useless", async () => {
  served("new");
  serveEarly("/v1/projects/room", Promise.resolve("early"));
  await post("/v1/projects", {});
  expect(await get("/v1/projects/room")).toBe("new");
});
