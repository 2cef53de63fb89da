/** The course of a policy as lines: what followed next to what was predicted, and the evidence. */

import { day, num } from "../../lib/format";
import type { Monitor, WantedShare } from "../../lib/types";

/** Fewer days than this are shown as batches of outcomes. */
const LEAST_DAYS = 5;

/** A mean of fewer outcomes says little, and its interval is as wide as the picture. */
const LEAST_OUTCOMES = 5;

/** Labels below an axis: as many as stand next to each other on a phone. */
const LABELS = 5;

export interface Course {
  /** "by day" or "by 40 outcomes". */
  by: string;
  observed: (number | null)[];
  predicted: (number | null)[];
  band: [low: number, high: number][];
  labels: [index: number, text: string][];
  /** Index from which the world has changed; null without an alarm. */
  from: number | null;
}

interface Point {
  /** When it began. */
  since: Date;
  until: Date;
  wanted: WantedShare | null;
}

/** The share of time as wanted, by day or by batches where there are few days. */
export function courseOf(monitor: Monitor): Course {
  const days = monitor.days.filter((each) => (each.wanted?.outcomes ?? 0) >= LEAST_OUTCOMES);
  const isByDay = days.length >= LEAST_DAYS;
  const points = isByDay ? days.map(pointOfDay) : batchPoints(monitor);
  const size = monitor.batches[0]?.outcomes ?? 0;
  const byBatch = size === 0 ? "" : `by ${size} outcomes`;
  const changedAt = monitor.change.alarm ? monitor.change.since : null;
  return {
    by: isByDay ? "by day" : byBatch,
    observed: points.map((point) => point.wanted?.observed ?? null),
    predicted: points.map((point) => point.wanted?.predicted ?? null),
    band: points.map((point) => [point.wanted?.low ?? 0, point.wanted?.high ?? 0]),
    labels: labelsOf(points.map((point) => point.since)),
    from: indexFrom(points, changedAt),
  };
}

function pointOfDay(each: Monitor["days"][number]): Point {
  const since = new Date(`${each.day}T00:00:00Z`);
  return { since, until: new Date(since.getTime() + 86_399_999), wanted: each.wanted };
}

function batchPoints(monitor: Monitor): Point[] {
  return monitor.batches
    .map((batch) => ({
      since: new Date(batch.since),
      until: new Date(batch.until),
      wanted: batch.wanted,
    }))
    .filter((point) => point.wanted !== null);
}

export interface EvidenceCourse {
  evidence: number[];
  labels: [index: number, text: string][];
  from: number | null;
  /** The evidence at which an alarm is raised. */
  threshold: number;
}

/** The evidence that the world has changed, after each batch of outcomes; it is never below 0. */
export function evidenceOf(monitor: Monitor): EvidenceCourse {
  const points = monitor.batches.map((batch) => ({
    since: new Date(batch.since),
    until: new Date(batch.until),
    wanted: null,
  }));
  const changedAt = monitor.change.alarm ? monitor.change.since : null;
  return {
    evidence: monitor.batches.map((batch) => Math.max(0, batch.evidence)),
    labels: labelsOf(points.map((point) => point.until)),
    from: indexFrom(points, changedAt),
    threshold: Math.log10(monitor.change.run_length),
  };
}

function indexFrom(points: Point[], time: string | null): number | null {
  if (time === null) {
    return null;
  }
  const index = points.findIndex((point) => point.until >= new Date(time));
  return index < 0 ? null : index;
}

/** A few labels, evenly spread: days, or times of day where all of it was within two days. */
export function labelsOf(times: Date[]): [number, string][] {
  const first = times[0];
  const last = times.at(-1);
  if (first === undefined || last === undefined) {
    return [];
  }
  const isShort = last.getTime() - first.getTime() < 2 * 86_400_000;
  const count = Math.min(LABELS, times.length);
  const labels: [number, string][] = [];
  for (let place = 0; place < count; place += 1) {
    const index = count === 1 ? 0 : Math.round((place * (times.length - 1)) / (count - 1));
    const time = times[index] ?? first;
    const text = isShort ? time.toLocaleTimeString("en-GB").slice(0, 5) : day(time);
    const isRepeated = labels.at(-1)?.[1] === text;
    if (!isRepeated) {
      labels.push([index, text]);
    }
  }
  return labels;
}

/** The picture of the share in words, for screen readers. */
export function courseWords(course: Course): string {
  const known = course.observed.filter((value) => value !== null);
  const last = known.at(-1);
  if (last === undefined) {
    return "No outcomes yet";
  }
  const predicted = course.predicted.findLast((value) => value !== null);
  const outside = course.observed.filter((value, index) => {
    const ends = course.band[index];
    return value !== null && ends !== undefined && (value < ends[0] || value > ends[1]);
  }).length;
  return (
    `Share of time as wanted, ${course.by}: from ${num(known[0])} to ${num(last)}, ` +
    `predicted ${num(predicted)} at last; ${outside} of ${known.length} points outside the interval`
  );
}
