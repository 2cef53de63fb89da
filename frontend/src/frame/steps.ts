/** The steps of a log, in order; a step has a screen, a name and a key. */

import type { Component } from "svelte";

import { STEPS, type Step } from "../lib/address.svelte";
import type { IconName } from "../parts/icons";
import Log from "../screens/Log.svelte";

interface View {
  title: string;
  /** For the tab bar of narrow windows. */
  short: string;
  icon: IconName;
  /** Loads the screen, which is a file of its own. */
  load: () => Promise<{ default: Component }>;
}

export interface StepView extends View {
  step: Step;
  /** The key that leads there. */
  key: string;
}

const VIEWS: Record<Step, View> = {
  // The first step is part of the page: most visits begin there.
  log: {
    title: "Log",
    short: "Log",
    icon: "log",
    load: () => Promise.resolve({ default: Log }),
  },
  policy: {
    title: "Goal & policy",
    short: "Policy",
    icon: "goal",
    load: () => import("../screens/Policy.svelte"),
  },
  trust: {
    title: "Trust",
    short: "Trust",
    icon: "trust",
    load: () => import("../screens/Trust.svelte"),
  },
  compare: {
    title: "Compare",
    short: "Compare",
    icon: "compare",
    load: () => import("../screens/Compare.svelte"),
  },
  deploy: {
    title: "Deploy",
    short: "Deploy",
    icon: "deploy",
    load: () => import("../screens/Deploy.svelte"),
  },
  watch: {
    title: "Watch",
    short: "Watch",
    icon: "watch",
    load: () => import("../screens/Watch.svelte"),
  },
};

export const steps: StepView[] = STEPS.map((step, index) => {
  return { step, key: String(index + 1), ...VIEWS[step] };
});

export function stepOf(step: Step): StepView {
  return steps[STEPS.indexOf(step)]!;
}
