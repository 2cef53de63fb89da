/** What screen readers hear of Trust: the verdict, and how far a job is. */

import { announce } from "../../lib/announce.svelte";
import { spoken } from "./claim";
import type { TrustModel } from "./model.svelte";

/** Says both in the page's live region; called while a component is set up. */
export function speak(model: TrustModel): void {
  let said = "";
  $effect(() => {
    const isNew = model.verdict !== null && model.isCurrent;
    const text = isNew ? spoken(model.verdict!) : "";
    if (text !== "" && text !== said) {
      said = text;
      announce(text);
    }
  });

  const quarter = $derived.by(() => {
    const progress = model.judging.isRunning ? model.judging.job?.progress : null;
    return progress?.of ? Math.floor((4 * progress.done) / progress.of) : null;
  });
  $effect(() => {
    if (quarter !== null && quarter < 4) {
      announce(`Judging: ${25 * quarter} % of the models sampled.`);
    }
  });
}
