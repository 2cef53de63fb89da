/**
 * Numbers, times and names as a page shows them: tabular figures, a proper minus, three decimals.
 * Exact values go to the clipboard and to exports.
 */

const MINUS = "−";
const MISSING = "–";

type Maybe = number | null | undefined;

function isMissing(value: Maybe): value is null | undefined {
  return value === null || value === undefined || Number.isNaN(value);
}

/** A number with fixed decimals: 0.504, −2.800. */
export function num(value: Maybe, digits = 3): string {
  if (isMissing(value)) {
    return MISSING;
  }
  const text = Math.abs(value).toFixed(digits);
  const isZero = Number(text) === 0;
  return value < 0 && !isZero ? MINUS + text : text;
}

/** A probability: .606, <.001, >.999; 0 and 1 only where they are exact. */
export function prob(value: Maybe): string {
  if (isMissing(value)) {
    return MISSING;
  }
  if (value <= 0) {
    return "0";
  }
  if (value >= 1) {
    return "1";
  }
  if (value < 0.0005) {
    return "<.001";
  }
  if (value > 0.9995) {
    return ">.999";
  }
  return value.toFixed(3).replace(/^0\./, ".").replace(/^1\.000$/, ">.999");
}

/** A difference with its sign: +0.093, −0.020. */
export function signed(value: Maybe, digits = 3): string {
  if (isMissing(value)) {
    return MISSING;
  }
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) {
    return text;
  }
  return (value < 0 ? MINUS : "+") + text;
}

/** Two ends: 0.076 to 0.111, or with signs +0.076 to +0.111. */
export function range(low: number, high: number, digits = 3, withSign = false): string {
  const write = withSign ? signed : num;
  return `${write(low, digits)} to ${write(high, digits)}`;
}

/** Made once: `toLocaleString` would look its rules up for every number. */
const WHOLE = new Intl.NumberFormat("en-US");

/** A whole number with separators: 92,546. */
export function int(value: Maybe): string {
  return isMissing(value) ? MISSING : WHOLE.format(Math.round(value));
}

/** A share as per cent: 28 %; small shares that are not zero are "<1 %". */
export function pct(value: Maybe, digits = 0): string {
  if (isMissing(value)) {
    return MISSING;
  }
  const smallest = 0.5 * 10 ** -digits;
  const percent = 100 * value;
  if (percent > 0 && percent < smallest) {
    return `<${(10 ** -digits).toFixed(digits)} %`;
  }
  if (percent < 100 && percent > 100 - smallest) {
    return `>${(100 - 10 ** -digits).toFixed(digits)} %`;
  }
  return `${num(percent, digits)} %`;
}

/** An amount of records in few characters: 1,204, 69.5, 0.25, <0.01. */
export function short(value: Maybe): string {
  if (isMissing(value)) {
    return MISSING;
  }
  const size = Math.abs(value);
  if (size === 0) {
    return "0";
  }
  if (size >= 100) {
    return int(value).replace("-", MINUS);
  }
  if (size >= 10) {
    return num(value, 1);
  }
  if (size >= 0.01) {
    return num(value, 2);
  }
  return value > 0 ? "<0.01" : `>${MINUS}0.01`;
}

/** A value of a column, with at most four significant digits: 8, 12.5, 1,204. */
export function plain(value: Maybe): string {
  if (isMissing(value)) {
    return MISSING;
  }
  const rounded = Number(value.toPrecision(4));
  const text = rounded.toLocaleString("en-US", { maximumSignificantDigits: 4 });
  return text.replace("-", MINUS);
}

/** A size of a file: 8.2 KiB, 1.4 MiB. */
export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : 1;
  return `${size.toFixed(digits)} ${units[unit]}`;
}

/** A number with a noun: 1 row, 480 rows. */
export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${int(value)} ${value === 1 ? noun : plural}`;
}

/** Names in a sentence: a, b and c; or "a, b and 5 others". */
export function listed(names: string[], most = 5): string {
  const shown = names.length > most ? names.slice(0, most - 1) : names;
  const others = names.length - shown.length;
  const parts = others > 0 ? [...shown, `${int(others)} others`] : shown;
  if (parts.length < 2) {
    return parts.join("");
  }
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

/** A text that may be very long, in at most so many characters: its beginning and an ellipsis. */
export function brief(text: string, most = 60): string {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}

/** How long ago a time was: just now, 2 min ago, yesterday, 12 Oct. */
export function ago(time: string, now: Date = new Date()): string {
  const then = new Date(time);
  const seconds = (now.getTime() - then.getTime()) / 1000;
  if (Number.isNaN(seconds)) {
    return MISSING;
  }
  if (seconds < 60) {
    return "just now";
  }
  if (seconds < 3600) {
    return `${Math.floor(seconds / 60)} min ago`;
  }
  if (seconds < 86400) {
    return `${Math.floor(seconds / 3600)} h ago`;
  }
  if (seconds < 172800) {
    return "yesterday";
  }
  return day(then, now);
}

/** A day: 12 Oct, with the year if it is another one. */
export function day(time: Date, now: Date = new Date()): string {
  const isThisYear = time.getFullYear() === now.getFullYear();
  return time.toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    year: isThisYear ? undefined : "numeric",
  });
}

/** A day in a sentence: today, yesterday, 12 Oct. */
export function sentenceDay(time: string, now: Date = new Date()): string {
  const then = new Date(time);
  if (then.toDateString() === now.toDateString()) {
    return "today";
  }
  const before = new Date(now);
  before.setDate(now.getDate() - 1);
  return then.toDateString() === before.toDateString() ? "yesterday" : day(then, now);
}

/** Since when something is so, in a sentence: since 14:03, since yesterday, since 12 Oct. */
export function since(time: string, now: Date = new Date()): string {
  const then = new Date(time);
  const isToday = then.toDateString() === now.toDateString();
  const minute = { hour: "2-digit", minute: "2-digit" } as const;
  return `since ${isToday ? then.toLocaleTimeString("en-GB", minute) : sentenceDay(time, now)}`;
}

/** A time to the second: 12 Oct, 14:03:27. */
export function moment(time: string): string {
  const then = new Date(time);
  return `${day(then)}, ${then.toLocaleTimeString("en-GB")}`;
}

/** Ends and steps of an axis that holds all values, at round numbers. */
export function axis(values: number[], wanted = 5): { min: number; max: number; ticks: number[] } {
  const finite = values.filter(Number.isFinite);
  const low = finite.length ? Math.min(...finite) : 0;
  const high = finite.length ? Math.max(...finite) : 1;
  const span = high - low || Math.abs(high) || 1;

  // The step: 1, 2 or 5 times a power of ten.
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((each) => each * power >= rough) ?? 10;
  const step = factor * power;

  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const ticks: number[] = [];
  for (let index = first; index <= last; index += 1) {
    ticks.push(Number((index * step).toPrecision(12)));
  }
  return { min: ticks[0] ?? 0, max: ticks.at(-1) ?? 1, ticks };
}

/** Decimals with which the ticks of an axis differ. */
export function tickDigits(ticks: number[]): number {
  const step = Math.abs((ticks[1] ?? 1) - (ticks[0] ?? 0));
  return Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)));
}

/** Text as the beginning of a sentence. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A sentence with a capital and a full stop; the library's messages have neither. */
export function sentence(text: string): string {
  const start = capital(text.trim());
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
