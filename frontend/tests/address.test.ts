import { expect, test } from "vitest";

import {
  type Address,
  changed,
  formatAddress,
  pack,
  parseAddress,
  sharedQuery,
  STEPS,
  unpack,
} from "../src/lib/address.svelte";
import { path } from "../src/lib/api";
import { keyOf } from "../src/lib/session.svelte";

const LABELS = [
  "cool",
  "",
  "a/b?c=d&e#f",
  "100 % sure",
  "שלום",
  "🤖 robot",
  "=1+1",
  '"quoted" \\ <b>',
  " ends with space ",
  "a+b",
];

test("every view survives its link", () => {
  for (const step of STEPS) {
    for (const label of LABELS) {
      const address: Address = {
        log: label || "log",
        step,
        query: { g: pack({ prefer: { [label]: 0.5 } }), s: label, v: "change" },
      };
      expect(parseAddress(formatAddress(address))).toEqual(address);
    }
  }
});

test("anything that is no view is the home page, or the first step of a log", () => {
  for (const hash of ["", "#", "#/", "#/home", "#/home/policy"]) {
    expect(parseAddress(hash)).toEqual({ log: null, step: "home", query: {} });
  }
  expect(parseAddress("#/rooms")).toEqual({ log: "rooms", step: "log", query: {} });
  expect(parseAddress("#/rooms/nowhere")).toMatchObject({ log: "rooms", step: "log" });
  expect(parseAddress("#/100%/policy").log).toBe("100%");
});

test("goals go through the query, and a damaged one is none", () => {
  const goal = { prefer: { "a & b": 1 }, forbid: [[null, "heat"]] };
  const link = formatAddress({ log: "rooms", step: "policy", query: { g: pack(goal) } });
  expect(unpack(parseAddress(link).query.g)).toEqual(goal);
  expect(unpack('{"prefer":')).toBeNull();
  expect(unpack(undefined)).toBeNull();
});

test("changes set and remove names; a goal goes along to another step", () => {
  const query = { g: "{}", m: "TL", s: "cool", v: "change" };
  expect(changed(query, { s: null, v: "before" })).toEqual({ g: "{}", m: "TL", v: "before" });
  expect(sharedQuery(query)).toEqual({ g: "{}", m: "TL" });
});

test("the key of the address is found only where it is one", () => {
  expect(keyOf("#key=a-B_9")).toBe("a-B_9");
  expect(keyOf("#/home")).toBeNull();
  expect(keyOf("#key=")).toBeNull();
});

test("parts of a path are encoded", () => {
  expect(path`/v1/drafts/${"a/b ?"}/explain`).toBe("/v1/drafts/a%2Fb%20%3F/explain");
  expect(path`/v1/projects`).toBe("/v1/projects");
});
