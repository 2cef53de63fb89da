/**
 * What the palette offers. A screen adds its own while it is shown:
 *
 *     $effect(() => offer(states.map((state) => ({ icon: "goal", text: `State ${state}`, hint: "its rule", run }))));
 */

import { untrack } from "svelte";

import type { IconName } from "../parts/icons";

export interface Command {
  icon: IconName;
  text: string;
  /** Where it leads, in a word or two. */
  hint: string;
  run: () => void;
}

let offered: Command[][] = $state.raw([]);

/** Everything that screens offer now. */
export function commands(): Command[] {
  return offered.flat();
}

/** Adds commands to the palette; returns how to remove them, as an effect does. */
export function offer(added: Command[]): () => void {
  // An effect that offers must not follow what others offer.
  offered = [...untrack(() => offered), added];
  return () => {
    offered = offered.filter((each) => each !== added);
  };
}
