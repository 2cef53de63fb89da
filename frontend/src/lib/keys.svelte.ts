/**
 * Keys: shortcuts of the whole page, and moving about in grids.
 *
 * Single keys act only where nothing is being typed, and can be turned off: screen readers use
 * letters of their own.
 */

const NAME = "pastwise-keys";

/** Whether single keys (1 to 6, t, ?) act. */
export const shortcuts: { on: boolean } = $state({ on: isOnByDefault() });

function isOnByDefault(): boolean {
  try {
    return localStorage.getItem(NAME) !== "off";
  } catch {
    return true;
  }
}

/** Turns single keys on or off and remembers it. */
export function setShortcuts(on: boolean): void {
  shortcuts.on = on;
  try {
    localStorage.setItem(NAME, on ? "on" : "off");
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** Inputs in which letters and digits do nothing. */
const TYPELESS = ["range", "checkbox", "radio", "button"];

/** Whether an event comes from a place where people type or choose. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) {
    return false;
  }
  if (target instanceof HTMLInputElement && TYPELESS.includes(target.type)) {
    return false;
  }
  return target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

export function hasModifier(event: KeyboardEvent): boolean {
  return event.metaKey || event.ctrlKey || event.altKey;
}

/** Ctrl-K, or Cmd-K on a Mac. */
export function isPaletteKey(event: KeyboardEvent): boolean {
  const isCommand = event.metaKey || event.ctrlKey;
  return isCommand && !event.altKey && event.key.toLowerCase() === "k";
}

/** How the palette's key is written on this machine. */
export function paletteKeyName(): string {
  return /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl K";
}

export interface Cell {
  row: number;
  column: number;
}

/**
 * Where a key leads in a grid, or null if it leads nowhere.
 *
 * Arrows move by one, Home and End to the ends of the row, with Ctrl to the corners, PageUp and
 * PageDown by ten rows.
 */
export function moved(
  event: Pick<KeyboardEvent, "key" | "ctrlKey">,
  from: Cell,
  rows: number,
  columns: number,
): Cell | null {
  const to = { ...from };
  switch (event.key) {
    case "ArrowUp":
      to.row -= 1;
      break;
    case "ArrowDown":
      to.row += 1;
      break;
    case "ArrowLeft":
      to.column -= 1;
      break;
    case "ArrowRight":
      to.column += 1;
      break;
    case "PageUp":
      to.row -= 10;
      break;
    case "PageDown":
      to.row += 10;
      break;
    case "Home":
      to.column = 0;
      to.row = event.ctrlKey ? 0 : to.row;
      break;
    case "End":
      to.column = columns - 1;
      to.row = event.ctrlKey ? rows - 1 : to.row;
      break;
    default:
      return null;
  }
  return {
    row: Math.max(0, Math.min(rows - 1, to.row)),
    column: Math.max(0, Math.min(columns - 1, to.column)),
  };
}
