/** Code to paste: the real address of the service, the real name of the policy, its own labels. */

import type { Counts } from "../../lib/types";

export const LANGUAGES = [
  { value: "python", text: "Python" },
  { value: "curl", text: "curl" },
  { value: "process", text: "In process" },
] as const;

export type Language = (typeof LANGUAGES)[number]["value"];

export interface Example {
  /** Such as `http://127.0.0.1:8765`. */
  address: string;
  policy: string;
  version: number;
  /** A state in which is decided, an action, and a state that may follow. */
  state: string;
  action: string;
  next: string;
  /** Whether every outcome has a reward as well. */
  hasRewards: boolean;
  learns: boolean;
}

type Step = Pick<Example, "state" | "action" | "next" | "hasRewards">;

/** What the log has most often: a state, what was done in it, and what followed. */
export function stepOf(counts: Counts | null): Step {
  const states = counts?.states ?? [];
  const open = states.filter((state) => !state.terminal);
  const state = open.toSorted((a, b) => b.records - a.records)[0]?.key ?? "state";

  // What followed; a log that is too large for the page comes without its transitions.
  const transitions = counts?.transitions ?? [];
  const fromState = transitions.filter(([from]) => states[from ?? -1]?.key === state);
  const most = fromState.toSorted((a, b) => (b[3] ?? 0) - (a[3] ?? 0))[0] ?? [];
  return {
    state,
    action: counts?.actions[most[1] ?? 0] ?? "action",
    next: states[most[2] ?? -1]?.key ?? state,
    hasRewards: counts?.has_rewards ?? false,
  };
}

/** Text as a literal of Python. */
function quoted(text: string): string {
  const isPlain = !/['\\\p{C}]/u.test(text);
  return text.includes('"') && isPlain ? `'${text}'` : JSON.stringify(text);
}

/** Text as one word of a shell. */
export function shellWord(text: string): string {
  const isPlain = /^[\w./:@%+,=-]+$/.test(text);
  return isPlain ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function codeOf(language: Language, example: Example): string {
  if (language === "python") {
    return pythonCode(example);
  }
  return language === "curl" ? curlCode(example) : processCode(example);
}

/** The reward of an outcome, as one more argument. */
function rewardOf(example: Example): string {
  return example.hasRewards ? ", reward=1.0" : "";
}

function pythonCode(example: Example): string {
  const action = quoted(example.action);
  return `import os
from pastwise.service.client import Client

client = Client(${quoted(example.address)}, os.environ["TOKEN"])

decision = client.decide(${quoted(example.policy)}, ${quoted(example.state)})
if decision.mode == "live":
    print("do", decision.action)  # here your program acts
else:  # in shadow: report what your program did instead
    client.taken(decision.decision_id, ${action}, by="my program")

# when it is known what followed
client.outcome(decision.decision_id, ${quoted(example.next)}${rewardOf(example)})`;
}

function curlCode(example: Example): string {
  const decide = JSON.stringify({ state: example.state });
  const taken = JSON.stringify({ action: example.action, by: "my program" });
  const reward = example.hasRewards ? { reward: 1 } : {};
  const outcome = JSON.stringify({ next_state: example.next, ...reward });
  return `curl ${example.address}/v1/policies/${example.policy}/decide \\
    --header "Authorization: Bearer $TOKEN" \\
    --header "Idempotency-Key: $KEY" \\
    --json ${shellWord(decide)}

# in shadow: what your program did instead; $ID is decision_id of the answer
curl ${example.address}/v1/decisions/$ID/taken \\
    --header "Authorization: Bearer $TOKEN" \\
    --json ${shellWord(taken)}

# when it is known what followed
curl ${example.address}/v1/decisions/$ID/outcome \\
    --header "Authorization: Bearer $TOKEN" \\
    --json ${shellWord(outcome)}`;
}

function processCode(example: Example): string {
  const file = quoted(`${example.policy}-${example.version}.safetensors`);
  const live = example.learns ? "live(seed=1)" : "live(seed=1, fixed=True)";
  const state = quoted(example.state);
  const observe = `live.observe(${state}, action, ${quoted(example.next)}${rewardOf(example)})`;
  const learning = example.learns
    ? `\n\n# when it is known what followed\n${observe}`
    : "\n\n# its rule is fixed: what follows is for the next version";
  return `import pastwise as pw  # no service: in your own process

live = pw.load(${file}).${live}
action = live.decide(${state})${learning}`;
}

/** The command that serves the policies of this workbench without it. */
export function serveCommand(data: string, address: string): string {
  const listen = address.replace(/^https?:\/\//, "");
  return `pastwise serve --data ${shellWord(data)} --listen ${shellWord(listen)}`;
}
