/** What Goal & policy adds to the palette: states, methods, views, saving. */

import { update } from "../../lib/address.svelte";
import { type Command, offer } from "../../lib/commands.svelte";
import { labelName } from "../../lib/goal";
import { methodName } from "../../lib/methods";
import { METHODS, type PolicyModel } from "./model.svelte";

/** States that the palette can find; more have a search field of their own. */
const MOST_STATES = 1000;

/** Offers commands while the screen is shown; called while a component is set up. */
export function offerCommands(model: PolicyModel, onsave: () => void, onsaved: () => void): void {
  $effect(() => {
    const states = model.states.slice(0, MOST_STATES).map((state): Command => {
      return {
        icon: "goal",
        text: labelName(state),
        hint: "why this rule",
        run: () => model.pick(state, likeliest(model, state)),
      };
    });
    return offer([
      ...states,
      ...METHODS.map((method): Command => {
        return {
          icon: "swap",
          text: methodName(method),
          hint: "method",
          run: () => model.setMethod(method),
        };
      }),
      { icon: "goal", text: "What was done", hint: "view", run: () => update({ v: "before" }) },
      { icon: "goal", text: "Change", hint: "view", run: () => update({ v: "change" }) },
      { icon: "file", text: "Save this policy", hint: "give it a name", run: onsave },
      { icon: "file", text: "Saved policies", hint: "open or delete", run: onsaved },
    ]);
  });
}

/** The likeliest action of a state. */
function likeliest(model: PolicyModel, state: string): string {
  const start = model.states.indexOf(state) * model.actions.length;
  let best = 0;
  model.actions.forEach((_, column) => {
    const probability = model.rule?.[start + column] ?? 0;
    if (probability > (model.rule?.[start + best] ?? 0)) {
      best = column;
    }
  });
  return model.actions[best] ?? "";
}
