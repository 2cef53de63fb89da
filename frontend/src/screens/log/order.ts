/** The order in which states and actions are shown. */

const NUMBER = /^-?\d+(\.\d+)?$/;

/** Keys in their first order, which is the service's: all numbers by size, 2 before 10. */
export function byNumber(keys: string[]): string[] {
  const areNumbers = keys.every((key) => NUMBER.test(key));
  return areNumbers ? [...keys].sort((one, other) => Number(one) - Number(other)) : keys;
}

/** Keys in a saved order; those that it does not name follow in their own. */
export function ordered(keys: string[], saved: string[] | undefined): string[] {
  const known = new Set(keys);
  const first = (saved ?? []).filter((key) => known.has(key));
  return [...new Set([...first, ...keys])];
}

/** A list with one thing moved to another place. */
export function movedTo<T>(list: T[], from: number, to: number): T[] {
  const place = Math.max(0, Math.min(list.length - 1, to));
  const moved = list[from];
  if (moved === undefined) {
    return list;
  }
  const others = list.filter((_, index) => index !== from);
  return [...others.slice(0, place), moved, ...others.slice(place)];
}
