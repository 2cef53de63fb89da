/** The verdict in words: one of three, what overrules it, and which interval decided. */

import { capital, int, num, signed } from "../../lib/format";
import type { Interval, Verdict, VerdictWord } from "../../lib/types";
import {
  FEWEST_SAMPLES,
  hasVerdict,
  isOverruled,
  whyUnclear,
  wordAgainst,
} from "../../lib/verdict";
import type { IntervalRow } from "../../parts/Interval.svelte";

const TONES: Record<VerdictWord, string> = {
  better: "var(--good)",
  worse: "var(--bad)",
  "cannot tell": "var(--unsure)",
};

/** What a policy is compared with, in words. */
const REFERENCES: Record<string, string> = {
  logged: "what was done",
  random: "random",
};

export interface Claim {
  /** The word of the seal: that of the verdict, after everything that overrules it. */
  word: VerdictWord;
  title: string;
  /** What follows the title: the other comparison, and the reason where it is unclear. */
  because: string;
}

export function claimOf(verdict: Verdict): Claim {
  const word = wordAgainst(verdict, "logged");
  const byTheLog = verdict.comparisons.logged?.by_the_log ?? "cannot tell";
  if (!hasVerdict(verdict)) {
    return {
      word,
      title: "No verdict from so few samples",
      because: `There are ${int(verdict.samples)}; fewer than ${FEWEST_SAMPLES} give no verdict.`,
    };
  }
  if (isOverruled(verdict)) {
    const isClear = byTheLog !== "cannot tell";
    const start = isClear ? `${capital(byTheLog)} by the log, but` : "Cannot tell, and";
    const because = againstRandom(verdict, byTheLog);
    return { word, title: `${start} not a fair comparison`, because };
  }
  if (word === "cannot tell") {
    const because = `${whyUnclear(verdict)} ${againstRandom(verdict, word)}`;
    return { word, title: "Cannot tell if it is better than what was done", because };
  }
  const title = `${capital(word)} than what was done`;
  return { word, title, because: againstRandom(verdict, word) };
}

/** The comparison with acting at random, as what follows the first one. */
function againstRandom(verdict: Verdict, first: VerdictWord): string {
  const second = verdict.comparisons.random?.by_the_log ?? "cannot tell";
  if (second === "cannot tell") {
    return "Against acting at random: cannot tell.";
  }
  if (first === "cannot tell") {
    return `${capital(second)} than acting at random.`;
  }
  return `${first === second ? "and" : "but"} ${second} than acting at random.`;
}

/** Which interval decides, and what does not count. */
export function decidingWords(verdict: Verdict): string {
  const comparison = verdict.comparisons.logged;
  if (comparison === undefined) {
    return "";
  }
  const shown = percent(comparison.difference);
  const deciding = percent(comparison.deciding);
  const margin = `differences up to ${num(verdict.margin)} do not count`;
  if (shown === deciding) {
    return `The ${deciding} interval decides; ${margin}.`;
  }
  return `Bar: ${shown} interval. Thin line: the ${deciding} interval, which decides; ${margin}.`;
}

/** Rows of the differences: to what was done, to acting at random, and to others by their names. */
export function differenceRows(verdict: Verdict): IntervalRow[] {
  const rows = Object.entries(verdict.comparisons).map(([name, comparison]) => {
    const word = wordAgainst(verdict, name);
    const { difference, deciding } = comparison;
    const row: IntervalRow = {
      label: `Against ${REFERENCES[name] ?? name}`,
      mean: difference.mean ?? 0,
      low: difference.low ?? 0,
      high: difference.high ?? 0,
      tone: TONES[word],
      strong: true,
      hideMean: word === "cannot tell",
    };
    const isOther = deciding.level !== difference.level;
    if (isOther && deciding.low !== null && deciding.high !== null) {
      row.outer = [deciding.low, deciding.high];
    }
    return row;
  });
  return rows;
}

/** The smallest difference that three decimals show. */
const SMALLEST = 0.001;

/** Half the length of an axis of differences with zero in its middle, at a round number. */
export function reachOf(rows: IntervalRow[]): number {
  const ends = rows.flatMap((row) => [row.low, row.high, ...(row.outer ?? [])]);
  const most = Math.max(...ends.map(Math.abs), SMALLEST);
  const power = 10 ** Math.floor(Math.log10(most));
  const factor = [1, 2, 4, 10].find((each) => each * power >= most * 1.02) ?? 20;
  return Number((factor * power).toPrecision(3));
}

/** All of it for screen readers. */
export function spoken(verdict: Verdict): string {
  const claim = claimOf(verdict);
  const deciding = verdict.comparisons.logged?.deciding;
  const ends = [deciding?.low, deciding?.high].map((end) => signed(end));
  const interval = deciding === undefined ? "" : ` Difference ${ends.join(" to ")}.`;
  const alarm = verdict.alarm.raised ? " Alarm: negative transfer." : "";
  return `${claim.title}. ${capital(claim.because)}${interval}${alarm}`;
}

function percent(interval: Interval): string {
  return `${Number((100 * interval.level).toFixed(1))} %`;
}
