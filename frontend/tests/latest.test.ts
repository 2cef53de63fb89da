import { expect, test } from "vitest";

import { latest } from "../src/lib/latest";

/** Requests that are answered by hand, in any order. */
function bench() {
  const requests: { argument: number; answer: (text: string) => void; fail: () => void }[] = [];
  const received: [string, boolean][] = [];
  const failed: number[] = [];
  const signals: AbortSignal[] = [];
  const asked = latest(
    (argument: number, signal) => {
      signals.push(signal);
      return new Promise<string>((resolve, reject) => {
        requests.push({ argument, answer: resolve, fail: () => reject(new Error("no")) });
      });
    },
    {
      receive: (result, _argument, isNewest) => received.push([result, isNewest]),
      fail: (_error, argument) => failed.push(argument),
    },
  );
  return { asked, requests, received, failed, signals };
}

/** Lets promises go on. */
async function settle(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0));
}

test("one request is in flight, and the newest argument comes next", async () => {
  const { asked, requests, received } = bench();
  [1, 2, 3, 4].forEach((argument) => asked.ask(argument));
  expect(requests.map((request) => request.argument)).toEqual([1]);

  requests[0]!.answer("one");
  await settle();
  expect(requests.map((request) => request.argument)).toEqual([1, 4]);

  requests[1]!.answer("four");
  await settle();
  expect(received).toEqual([
    ["one", false],
    ["four", true],
  ]);
});

test("a steady stream of arguments is answered all along, and ends with the last one", async () => {
  const { asked, requests, received } = bench();
  for (let argument = 0; argument < 50; argument += 1) {
    asked.ask(argument);
    if (argument % 5 === 4) {
      requests.at(-1)!.answer(String(requests.at(-1)!.argument));
      await settle();
    }
  }
  requests.at(-1)!.answer("last");
  await settle();
  expect(received.length).toBeGreaterThanOrEqual(10);
  expect(requests.at(-1)!.argument).toBe(49);
  expect(received.at(-1)).toEqual(["last", true]);
});

test("a late answer of a cancelled request never overwrites a newer one", async () => {
  const { asked, requests, received, signals } = bench();
  asked.ask(1);
  asked.cancel();
  asked.ask(2);
  expect(signals[0]!.aborted).toBe(true);

  requests[1]!.answer("new");
  await settle();
  requests[0]!.answer("late");
  await settle();
  expect(received).toEqual([["new", true]]);
});

test("a cancelled request does not start what came after it twice", async () => {
  const { asked, requests } = bench();
  asked.ask(1);
  asked.cancel();
  asked.ask(2);
  asked.ask(3);
  requests[0]!.answer("late");
  await settle();
  expect(requests.map((request) => request.argument)).toEqual([1, 2]);
});

test("an error of an old argument is of no interest, that of the newest is reported", async () => {
  const { asked, requests, received, failed } = bench();
  asked.ask(1);
  asked.ask(2);
  requests[0]!.fail();
  await settle();
  expect(failed).toEqual([]);

  requests[1]!.fail();
  await settle();
  expect(failed).toEqual([2]);

  asked.ask(3);
  requests[2]!.answer("three");
  await settle();
  expect(received).toEqual([["three", true]]);
});
