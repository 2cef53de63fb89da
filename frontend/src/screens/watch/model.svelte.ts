/** What Watch shows of one policy; it follows the stream of the policy. */

import { onDestroy, untrack } from "svelte";

import { address } from "../../lib/address.svelte";
import { Answer } from "../../lib/answer.svelte";
import { asProblem, get, patch, path, type Problem } from "../../lib/api";
import { chosen } from "../../lib/deployed";
import { refreshProjects } from "../../lib/projects.svelte";
import type { Decision, Monitor, Page, Policy, Project, Version } from "../../lib/types";
import { decisionsPath } from "./decisions";
import { PolicyStream } from "./stream.svelte";

/** States and actions with evidence of a change that are asked for. */
const ROWS = 200;

interface Watched {
  project: Project;
  policies: Policy[];
  policy: Policy | null;
  versions: Version[];
  monitor: Monitor | null;
}

async function load(log: string, name: string | null, signal: AbortSignal): Promise<Watched> {
  const [project, all] = await Promise.all([
    get<Project>(path`/v1/projects/${log}`, { signal }),
    get<Page<Policy>>("/v1/policies?limit=500", { signal }),
  ]);
  const policies = all.items.filter((each) => project.policies.includes(each.name));
  const policy = chosen(policies, name);
  if (policy === null || policy.settings.version === null) {
    return { project, policies, policy: null, versions: [], monitor: null };
  }
  const place = path`/v1/policies/${policy.name}`;
  const [monitor, versions] = await Promise.all([
    get<Monitor>(`${place}/monitor?rows=${ROWS}`, { signal }),
    get<Page<Version>>(`${place}/versions?limit=500`, { signal }),
  ]);
  return { project, policies, policy, versions: versions.items, monitor };
}

export class WatchModel {
  answer = new Answer(async ([log, name]: [string, string | null], signal) => {
    const watched = await load(log, name, signal);
    this.stream?.heard();
    return watched;
  });
  decisions = new Answer((asked: string, signal) => get<Page<Decision>>(asked, { signal }));
  stream: PolicyStream | null = $state.raw(null);
  problem: Problem | null = $state.raw(null);

  readonly policy = $derived(this.answer.value?.policy ?? null);
  readonly monitor = $derived(this.answer.value?.monitor ?? null);
  readonly #name = $derived(this.policy?.name ?? null);

  constructor() {
    $effect(() => {
      if (address.log !== null) {
        this.answer.ask([address.log, address.query.n ?? null]);
      }
    });
    $effect(() => {
      if (this.#name !== null) {
        this.decisions.ask(decisionsPath(this.#name, address.query));
      }
    });

    // An alarm, or a mode that changes by itself, concerns the sidebar and Home as well.
    let known: string | null = null;
    $effect(() => {
      const policy = this.policy;
      const standing = policy && `${policy.name} ${policy.alarm} ${policy.settings.mode}`;
      if (known !== null && standing !== known) {
        untrack(refreshProjects);
      }
      known = standing;
    });

    // One stream for the policy that is shown.
    $effect(() => {
      const name = this.#name;
      if (name === null) {
        return;
      }
      const stream = new PolicyStream(name, () => this.#refresh());
      untrack(() => (this.stream = stream));
      return () => stream.close();
    });
    onDestroy(() => this.stream?.close());
  }

  /** Changes the mode, as it was read last. */
  async setMode(mode: Policy["settings"]["mode"]): Promise<void> {
    const policy = this.policy;
    if (policy === null) {
      return;
    }
    this.problem = null;
    try {
      const ifMatch = `"${policy.etag}"`;
      await patch<Policy>(path`/v1/policies/${policy.name}`, { mode }, { ifMatch });
    } catch (error) {
      this.problem = asProblem(error);
    }
    this.#refresh();
    refreshProjects();
  }

  again(): void {
    this.#refresh();
  }

  #refresh(): void {
    this.answer.again();
    this.decisions.again();
  }
}
