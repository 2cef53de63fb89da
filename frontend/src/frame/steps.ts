/** The steps of a log, as far as their screens exist: a file of `screens/` is a step of the page. */

import type { Component } from "svelte";

import { STEPS, type Step } from "../lib/address.svelte";
import type { IconName } from "../parts/icons";
import Log from "../screens/Log.svelte";

export interface StepView {
  step: Step;
  /** The key that leads there. */
  key: string;
  title: string;
  /** For the tab bar of narrow windows. */
  short: string;
  icon: IconName;
  /** Loads the screen, which is a file of its own. */
  load: () => Promise<{ default: Component }>;
}

const VIEWS: Record<Step, { title: string; short: string; icon: IconName }> = {
  log: { title: "Log", short: "Log", icon: "log" },
  policy: { title: "Goal & policy", short: "Policy", icon: "goal" },
  trust: { title: "Trust", short: "Trust", icon: "trust" },
  compare: { title: "Compare", short: "Compare", icon: "compare" },
  deploy: { title: "Deploy", short: "Deploy", icon: "deploy" },
  watch: { title: "Watch", short: "Watch", icon: "watch" },
};

const files = import.meta.glob<{ default: Component }>([
  "../screens/*.svelte",
  "!../screens/{Home,Log}.svelte",
]);

/** The first step is part of the page: most visits begin there. */
files["../screens/Log.svelte"] = () => Promise.resolve({ default: Log });

/** The steps that can be shown, in order. */
export const steps: StepView[] = STEPS.flatMap((step, index) => {
  const name = step.charAt(0).toUpperCase() + step.slice(1);
  const load = files[`../screens/${name}.svelte`];
  const key = String(index + 1);
  return load === undefined ? [] : [{ step, key, ...VIEWS[step], load }];
});

export function stepOf(step: string): StepView | undefined {
  return steps.find((each) => each.step === step);
}
