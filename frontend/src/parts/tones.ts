/** Tones of a message: what it means, with the icon that says the same as the colour. */

import type { IconName } from "./icons";

export type Tone = "good" | "bad" | "unsure" | "accent" | "plain";

export const ICON_OF_TONE: Record<Tone, IconName> = {
  good: "check",
  bad: "alarm",
  unsure: "info",
  accent: "info",
  plain: "info",
};
