/**
 * Colours of numbers, for both themes at once: `light-dark(…)` follows the theme by itself.
 *
 * One hue for probabilities: lightness falls evenly (rises in the dark), readable without colour
 * vision and in print. Two hues for changes, which all kinds of colour blindness distinguish; a sign
 * in the text says the same. Text on a colour always has a contrast of at least 4.5 : 1.
 */

/** Lightness, chroma and hue of OKLCH. */
export type Lch = [lightness: number, chroma: number, hue: number];

const INK_LUMINANCE = 0.0104;
const WHITE_LUMINANCE = 1;

function clipped(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** The colour of a probability, for canvases; pages use `ramp`. */
export function rampAt(probability: number, isDark: boolean): Lch {
  const depth = clipped(probability) ** 0.85;
  if (isDark) {
    return [0.245 + 0.5 * depth, 0.012 + 0.105 * depth, 258];
  }
  return [0.972 - 0.55 * depth, 0.008 + 0.135 * depth, 260];
}

/** The colour of a change of a probability, from -1 to 1, for canvases; pages use `diverge`. */
export function divergeAt(change: number, isDark: boolean): Lch {
  const depth = clipped(Math.abs(change)) ** 0.75;
  const hue = change > 0 ? 250 : 58;
  if (isDark) {
    return [0.245 + 0.42 * depth, 0.008 + 0.11 * depth, hue];
  }
  return [0.972 - 0.42 * depth, 0.006 + 0.125 * depth, hue];
}

/** An OKLCH colour in CSS. */
export function css([lightness, chroma, hue]: Lch): string {
  return `oklch(${lightness.toFixed(3)} ${chroma.toFixed(3)} ${hue})`;
}

function both(light: string, dark: string): string {
  return `light-dark(${light}, ${dark})`;
}

/** Shades between 0 and 1: more than an eye distinguishes. */
const SHADES = 256;

/** A function of a number from -1 to 1 that is computed once for each shade. */
function tabulated(compute: (value: number) => string): (value: number) => string {
  const known = new Map<number, string>();
  return (value) => {
    const shade = Math.round(Math.max(-1, Math.min(1, value)) * SHADES);
    let result = known.get(shade);
    if (result === undefined) {
      result = compute(shade / SHADES);
      known.set(shade, result);
    }
    return result;
  };
}

/** Colour of a probability. */
export const ramp = tabulated((probability) =>
  both(css(rampAt(probability, false)), css(rampAt(probability, true))),
);

/** Colour of text on `ramp`. */
export const onRamp = tabulated((probability) =>
  both(textOn(rampAt(probability, false)), textOn(rampAt(probability, true))),
);

/** Colour of a change of a probability. */
export const diverge = tabulated((change) =>
  both(css(divergeAt(change, false)), css(divergeAt(change, true))),
);

/** Colour of text on `diverge`. */
export const onDiverge = tabulated((change) =>
  both(textOn(divergeAt(change, false)), textOn(divergeAt(change, true))),
);

/** How much a next state is wanted, from 0 to 1: grey to blue. */
export function want(weight: number): string {
  if (!(weight > 0)) {
    return both("#c9c6bf", "#4a4c50");
  }
  const wanted = clipped(weight);
  const light: Lch = [0.78 - 0.3 * wanted, 0.06 + 0.09 * wanted, 260];
  const dark: Lch = [0.5 + 0.25 * wanted, 0.06 + 0.06 * wanted, 258];
  return both(css(light), css(dark));
}

/** Ink, white, or black where neither has enough contrast. */
export function textOn(background: Lch): string {
  const there = luminance(background);
  if (contrast(there, INK_LUMINANCE) >= 4.6) {
    return "#1b1a18";
  }
  return contrast(there, WHITE_LUMINANCE) >= 4.52 ? "#ffffff" : "#000000";
}

/** Contrast of two relative luminances, as WCAG defines it. */
export function contrast(one: number, other: number): number {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

/** Relative luminance of an OKLCH colour. */
export function luminance([lightness, chroma, hue]: Lch): number {
  // OKLCH to OKLab.
  const radians = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(radians);
  const b = chroma * Math.sin(radians);

  // OKLab to the responses of the cones.
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const small = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;

  // To linear sRGB, and its luminance.
  const red = clipped(4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * small);
  const green = clipped(-1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * small);
  const blue = clipped(-0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * small);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
