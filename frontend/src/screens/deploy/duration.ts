/** Durations as a number and a unit, for people; the service has seconds. */

export const UNITS = ["seconds", "minutes", "hours", "days"] as const;

export type Unit = (typeof UNITS)[number];

const SECONDS: Record<Unit, number> = { seconds: 1, minutes: 60, hours: 3600, days: 86400 };

/** The largest unit in which a duration is a whole number. */
export function split(seconds: number): { amount: number; unit: Unit } {
  for (const unit of [...UNITS].reverse()) {
    const amount = seconds / SECONDS[unit];
    if (amount >= 1 && Number.isInteger(amount)) {
      return { amount, unit };
    }
  }
  return { amount: seconds, unit: "seconds" };
}

export function toSeconds(amount: number, unit: Unit): number {
  return amount * SECONDS[unit];
}

/** A duration in words: 2 hours, 1 day, 90 seconds. */
export function durationWords(seconds: number): string {
  const { amount, unit } = split(seconds);
  return `${amount} ${amount === 1 ? unit.slice(0, -1) : unit}`;
}
