import { expect, test } from "vitest";

import { moved } from "../src/lib/keys.svelte";

const press = (key: string, ctrlKey = false) => ({ key, ctrlKey });

test("keys move within the grid and stop at its ends", () => {
  const from = { row: 1, column: 1 };
  expect(moved(press("ArrowUp"), from, 3, 4)).toEqual({ row: 0, column: 1 });
  expect(moved(press("ArrowRight"), from, 3, 4)).toEqual({ row: 1, column: 2 });
  expect(moved(press("PageDown"), from, 3, 4)).toEqual({ row: 2, column: 1 });
  expect(moved(press("Home"), from, 3, 4)).toEqual({ row: 1, column: 0 });
  expect(moved(press("End", true), from, 3, 4)).toEqual({ row: 2, column: 3 });
  expect(moved(press("ArrowLeft"), { row: 0, column: 0 }, 3, 4)).toEqual({ row: 0, column: 0 });
});

test("other keys are left alone", () => {
  expect(moved(press("x"), { row: 0, column: 0 }, 3, 4)).toBeNull();
});
