/** Pixels of the overview: a row for each state, or for several where there are more than pixels. */

import { css, rampAt } from "../../lib/colour";
import { FEW } from "./list";
import type { Lines } from "./lines";
import type { Row } from "./source.svelte";

/** Most rows of the picture; screens have no more pixels to show them. */
const MOST_ROWS = 1200;

/** Most columns of the picture. */
const MOST_COLUMNS = 200;

/** Pixels of the picture's width, and those at its right edge that mark rarely seen actions. */
const WIDTH = 50;
const MARGIN = 2;

export interface Picture {
  width: number;
  height: number;
  /** Mean probability of each pixel. */
  values: Float32Array;
  /** 1 where most of a pixel is likeliest actions that were seen rarely. */
  rare: Uint8Array;
  /** Share of the states of each row whose likeliest action was seen rarely. */
  marks: Float32Array;
}

/**
 * The policy as a picture in the order of a list.
 *
 * @param row - probabilities of a state; without them its likeliest action stands for it
 */
export function pictureOf(
  list: number[],
  lines: Lines,
  numActions: number,
  row: (place: number) => Row | null,
): Picture {
  const width = Math.min(numActions, MOST_COLUMNS);
  const height = Math.min(list.length, MOST_ROWS);
  const values = new Float32Array(width * height);
  const rareValues = new Float32Array(width * height);
  const marks = new Float32Array(height);
  const perRow = list.length / Math.max(1, height);
  const column = (action: number) => Math.floor((action * width) / numActions);

  list.forEach((place, index) => {
    const line = Math.floor(index / perRow);
    const start = line * width;
    const likeliest = start + column(lines.does[place]!);
    const rule = row(place)?.rule ?? null;
    if (rule === null) {
      values[likeliest]! += lines.chance[place]!;
    } else {
      for (let action = 0; action < numActions; action += 1) {
        values[start + column(action)]! += rule[action]!;
      }
    }
    if (lines.seen[place]! < FEW) {
      rareValues[likeliest]! += lines.chance[place]!;
      marks[line]! += 1 / perRow;
    }
  });

  const rare = new Uint8Array(width * height);
  values.forEach((value, pixel) => {
    rare[pixel] = rareValues[pixel]! > value / 2 ? 1 : 0;
    values[pixel] = value / perRow;
  });
  return { width, height, values, rare, marks };
}

/** Colours as a canvas stores them, one number for each pixel. */
function pixelsOf(colours: string[]): Uint32Array {
  const canvas = document.createElement("canvas");
  canvas.width = colours.length;
  canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  colours.forEach((colour, index) => {
    context.fillStyle = colour;
    context.fillRect(index, 0, 1, 1);
  });
  return new Uint32Array(context.getImageData(0, 0, colours.length, 1).data.buffer);
}

interface Palette {
  /** Pixels of 256 shades of a probability. */
  shades: Uint32Array;
  rare: number;
  mark: number;
}

const palettes = new Map<boolean, Palette>();

function paletteOf(isDark: boolean): Palette {
  let found = palettes.get(isDark);
  if (found === undefined) {
    const shares = Array.from({ length: 256 }, (_, shade) => shade / 255);
    const shades = pixelsOf(shares.map((share) => css(rampAt(share, isDark))));
    const [rare, mark] = pixelsOf(isDark ? ["#ff9b69", "#eceae6"] : ["#c04e18", "#1b1a18"]);
    found = { shades, rare: rare!, mark: mark! };
    palettes.set(isDark, found);
  }
  return found;
}

/** Paints a picture on a canvas; marks at the right edge need no colour. */
export function paint(canvas: HTMLCanvasElement, picture: Picture, isDark: boolean): void {
  const { width, height, values, rare, marks } = picture;
  const scale = Math.max(1, Math.round(WIDTH / Math.max(1, width)));
  canvas.width = width * scale + 1 + MARGIN;
  canvas.height = Math.max(1, height);
  const context = canvas.getContext("2d");
  if (context === null || height === 0) {
    return;
  }
  const image = context.createImageData(canvas.width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const palette = paletteOf(isDark);
  for (let line = 0; line < height; line += 1) {
    const start = line * canvas.width;
    for (let column = 0; column < width; column += 1) {
      const cell = line * width + column;
      const shade = palette.shades[Math.round(255 * Math.min(1, values[cell]!))]!;
      const pixel = rare[cell] === 1 ? palette.rare : shade;
      pixels.fill(pixel, start + column * scale, start + (column + 1) * scale);
    }
    const markStart = canvas.width - Math.ceil(MARGIN * Math.min(1, marks[line]!));
    pixels.fill(palette.mark, start + markStart, start + canvas.width);
  }
  context.putImageData(image, 0, 0);
}
