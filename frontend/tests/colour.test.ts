import { expect, test } from "vitest";

import { contrast, divergeAt, luminance, rampAt, textOn } from "../src/lib/colour";

const INK: Record<string, number> = { "#1b1a18": 0.0104, "#ffffff": 1, "#000000": 0 };

test("text on every colour of a number has a contrast of at least 4.5", () => {
  for (const isDark of [false, true]) {
    for (let step = -1000; step <= 1000; step += 1) {
      const value = step / 1000;
      for (const colour of [rampAt(Math.abs(value), isDark), divergeAt(value, isDark)]) {
        const text = INK[textOn(colour)]!;
        expect(contrast(luminance(colour), text)).toBeGreaterThanOrEqual(4.5);
      }
    }
  }
});

test("a larger probability is darker on paper and lighter in the dark", () => {
  for (let step = 1; step <= 20; step += 1) {
    const [less, more] = [(step - 1) / 20, step / 20];
    expect(luminance(rampAt(more, false))).toBeLessThan(luminance(rampAt(less, false)));
    expect(luminance(rampAt(more, true))).toBeGreaterThan(luminance(rampAt(less, true)));
  }
});
