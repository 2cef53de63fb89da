import { expect, test } from "vitest";

import {
  ago,
  axis,
  bytes,
  counted,
  int,
  listed,
  num,
  pct,
  plain,
  prob,
  range,
  short,
  signed,
  since,
  tickDigits,
} from "../src/lib/format";

test("numbers have a proper minus and no negative zero", () => {
  expect(num(-2.8)).toBe("−2.800");
  expect(num(-0.0001)).toBe("0.000");
  expect(signed(0.093)).toBe("+0.093");
  expect(signed(-0.02)).toBe("−0.020");
  expect(signed(0.0001)).toBe("0.000");
  expect(range(-0.04, 0.02, 2, true)).toBe("−0.04 to +0.02");
  expect(int(92546)).toBe("92,546");
});

test("what is missing is a dash", () => {
  for (const write of [num, prob, signed, int, pct, short]) {
    expect(write(null)).toBe("–");
    expect(write(Number.NaN)).toBe("–");
  }
});

test("only exact probabilities are 0 and 1", () => {
  expect(prob(0)).toBe("0");
  expect(prob(1)).toBe("1");
  expect(prob(1e-7)).toBe("<.001");
  expect(prob(1 - 1e-7)).toBe(">.999");
  expect(prob(0.606)).toBe(".606");
  expect(prob(0.9994)).toBe(".999");
});

test("shares that are not zero do not look like zero", () => {
  expect(pct(0.28)).toBe("28 %");
  expect(pct(0.001)).toBe("<1 %");
  expect(pct(0)).toBe("0 %");
  expect(pct(0.999)).toBe(">99 %");
  expect(pct(1)).toBe("100 %");
});

test("amounts of any size stay short", () => {
  expect(short(1204)).toBe("1,204");
  expect(short(69.46)).toBe("69.5");
  expect(short(0.25)).toBe("0.25");
  expect(short(0.000003)).toBe("<0.01");
  expect(short(-150)).toBe("−150");
});

test("values of a column have no more digits than they need", () => {
  expect(plain(8)).toBe("8");
  expect(plain(-12.5)).toBe("−12.5");
  expect(plain(1204)).toBe("1,204");
  expect(plain(0.30000000000000004)).toBe("0.3");
});

test("files, nouns and lists read well", () => {
  expect(bytes(8397)).toBe("8.2 KiB");
  expect(bytes(12)).toBe("12 B");
  expect(counted(1, "row")).toBe("1 row");
  expect(counted(480, "row")).toBe("480 rows");
  expect(listed(["a", "b", "c"])).toBe("a, b and c");
  expect(listed(["a", "b", "c", "d"], 3)).toBe("a, b and 2 others");
  expect(listed(["a"])).toBe("a");
});

test("times are as long ago as they are", () => {
  const now = new Date("2026-11-16T12:00:00Z");
  expect(ago("2026-11-16T11:59:30Z", now)).toBe("just now");
  expect(ago("2026-11-16T11:58:00Z", now)).toBe("2 min ago");
  expect(ago("2026-11-16T07:00:00Z", now)).toBe("5 h ago");
  expect(ago("2026-11-15T07:00:00Z", now)).toBe("yesterday");
  expect(ago("2026-10-12T07:00:00Z", now)).toBe("12 Oct");
  expect(ago("2025-10-12T07:00:00Z", now)).toBe("12 Oct 2025");
});

test("an axis holds its values at round numbers, however large or small they are", () => {
  for (const scale of [1e-6, 0.03, 1, 700, 1e9]) {
    for (const low of [-0.7, 0, 0.21]) {
      const values = [low * scale, (low + 0.43) * scale];
      const { min, max, ticks } = axis(values);
      expect(min).toBeLessThanOrEqual(values[0]!);
      expect(max).toBeGreaterThanOrEqual(values[1]!);
      expect(ticks.length).toBeGreaterThan(1);
      expect(ticks.length).toBeLessThan(9);
      const shown = ticks.map((tick) => num(tick, tickDigits(ticks)));
      expect(new Set(shown).size).toBe(ticks.length);
    }
  }
  expect(axis([0.5]).ticks.length).toBeGreaterThan(1);
  expect(axis([]).ticks.length).toBeGreaterThan(1);
});

test("since when something is so", () => {
  const now = new Date(2026, 10, 16, 12);
  expect(since(new Date(2026, 10, 16, 7, 5).toISOString(), now)).toBe("since 07:05");
  expect(since(new Date(2026, 10, 15, 7).toISOString(), now)).toBe("since yesterday");
  expect(since(new Date(2026, 9, 12, 7).toISOString(), now)).toBe("since 12 Oct");
});
