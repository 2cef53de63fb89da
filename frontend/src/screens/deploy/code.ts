/** Code to paste: the real address of the service, the real name of the policy, its own labels. */

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
  learns: boolean;
}

/** Text as a literal of Python and of JSON. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Text as one word of a shell. */
export function shellWord(text: string): string {
  const isPlain = /^[\w./:@%+,=-]+$/.test(text);
  return isPlain ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Text for a comment: one line, and not too long. */
function remark(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 40 ? `${line.slice(0, 39)}…` : line;
}

export function codeOf(language: Language, example: Example): string {
  if (language === "python") {
    return pythonCode(example);
  }
  return language === "curl" ? curlCode(example) : processCode(example);
}

function pythonCode(example: Example): string {
  return `from pastwise.service.client import Client

client = Client(${quoted(example.address)}, token)

decision = client.decide(${quoted(example.policy)}, ${quoted(example.state)})
if decision.mode == "live":
    do(decision.action)  # such as ${remark(example.action)}

# when it is known what followed
client.outcome(decision.decision_id, ${quoted(example.next)})`;
}

function curlCode(example: Example): string {
  const decide = JSON.stringify({ state: example.state });
  const outcome = JSON.stringify({ next_state: example.next });
  return `curl ${example.address}/v1/policies/${example.policy}/decide \\
    --header "Authorization: Bearer $TOKEN" \\
    --header "Idempotency-Key: $KEY" \\
    --json ${shellWord(decide)}

# when it is known what followed; $ID is decision_id of the answer
curl ${example.address}/v1/decisions/$ID/outcome \\
    --header "Authorization: Bearer $TOKEN" \\
    --json ${shellWord(outcome)}`;
}

function processCode(example: Example): string {
  const file = quoted(`${example.policy}-${example.version}.safetensors`);
  const live = example.learns ? "live(seed=1)" : "live(seed=1, fixed=True)";
  const observe = `live.observe(${quoted(example.state)}, action, ${quoted(example.next)})`;
  const learning = example.learns
    ? `\n\n# when it is known what followed\n${observe}`
    : "\n\n# its rule is fixed: what follows is for the next version";
  return `import pastwise as pw  # no service: in your own process

live = pw.load(${file}).${live}
action = live.decide(${quoted(example.state)})${learning}`;
}

/** The command that serves the policies of this workbench without it. */
export function serveCommand(data: string, address: string): string {
  const listen = address.replace(/^https?:\/\//, "");
  return `pastwise serve --data ${shellWord(data)} --listen ${shellWord(listen)}`;
}
