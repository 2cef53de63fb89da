/**
 * The deployed policies of a log: the one that is shown, its versions, and changes of its settings.
 *
 * A change needs the ETag of what the reader has seen. If somebody else was quicker, `stale` has both
 * sides, and nothing is overwritten unless the reader says so.
 */

import { address } from "../../lib/address.svelte";
import { announce } from "../../lib/announce.svelte";
import { Answer } from "../../lib/answer.svelte";
import { asProblem, get, patch, path, post, Problem } from "../../lib/api";
import { chosen } from "../../lib/deployed";
import { refreshProjects } from "../../lib/projects.svelte";
import type {
  Audit,
  Page,
  Policy,
  PolicySettings,
  Project,
  Version,
} from "../../lib/types";
import { switchesOf } from "./versions";

export type Changes = Partial<PolicySettings> & { reason?: string };

/** A change that somebody else was quicker with. */
export interface Stale {
  mine: Changes;
  /** The settings that the reader had seen, and those of now. */
  seen: PolicySettings;
  theirs: Policy;
}

interface Deployed {
  project: Project;
  policies: Policy[];
  policy: Policy | null;
  versions: Version[];
  audit: Audit[];
}

/** Changes in one answer; a log of changes of years is more than a page shows. */
const MOST = 500;

async function load(log: string, name: string | null, signal: AbortSignal): Promise<Deployed> {
  const [project, all, audit] = await Promise.all([
    get<Project>(path`/v1/projects/${log}`, { signal }),
    get<Page<Policy>>(`/v1/policies?limit=${MOST}`, { signal }),
    get<Page<Audit>>(`/v1/audit?limit=${MOST}`, { signal }),
  ]);
  const policies = all.items.filter((each) => project.policies.includes(each.name));
  const policy = chosen(policies, name);
  let versions: Version[] = [];
  if (policy !== null) {
    const address = path`/v1/policies/${policy.name}/versions`;
    versions = (await get<Page<Version>>(`${address}?limit=${MOST}`, { signal })).items;
  }
  return { project, policies, policy, versions, audit: audit.items };
}

export class DeployModel {
  answer = new Answer(([log, name]: [string, string | null], signal) => load(log, name, signal));
  /** What went wrong with the last change. */
  problem: Problem | null = $state.raw(null);
  stale: Stale | null = $state.raw(null);
  isBusy = $state(false);

  readonly policy = $derived(this.answer.value?.policy ?? null);
  /** The newest first. */
  readonly versions = $derived([...(this.answer.value?.versions ?? [])].reverse());
  readonly switches = $derived(
    switchesOf(this.answer.value?.audit ?? [], this.policy?.name ?? ""),
  );

  constructor() {
    $effect(() => {
      if (address.log !== null) {
        this.answer.ask([address.log, address.query.n ?? null]);
      }
    });
  }

  /** Changes settings, on the page at once; returns whether that went well. */
  async change(changes: Changes): Promise<boolean> {
    const policy = this.policy;
    if (policy === null) {
      return false;
    }
    const { reason: _, ...settings } = changes;
    this.#take({ ...policy, settings: { ...policy.settings, ...settings } });
    return this.#attempt(async () => {
      try {
        const ifMatch = `"${policy.etag}"`;
        this.#take(await patch<Policy>(path`/v1/policies/${policy.name}`, changes, { ifMatch }));
        announce("Saved");
      } catch (error) {
        this.#take(policy);
        if (!(error instanceof Problem) || error.slug !== "stale") {
          throw error;
        }
        const theirs = await get<Policy>(path`/v1/policies/${policy.name}`);
        this.stale = { mine: changes, seen: policy.settings, theirs };
        return false;
      }
      return true;
    });
  }

  /** Ends a collision: with the other settings, or with the reader's on top of them. */
  async settle(which: "mine" | "theirs"): Promise<void> {
    const stale = this.stale;
    if (stale === null) {
      return;
    }
    this.stale = null;
    this.#take(stale.theirs);
    if (which === "mine") {
      await this.change(stale.mine);
    }
  }

  async rollback(to: number, reason: string): Promise<boolean> {
    const policy = this.policy;
    if (policy === null) {
      return false;
    }
    return this.#attempt(async () => {
      await post<Policy>(path`/v1/policies/${policy.name}/rollback`, { to, reason });
      announce(`Rolled back to version ${to}`);
      return true;
    });
  }

  /** Does something, then asks for everything again; a failure is in `problem`. */
  async #attempt(work: () => Promise<boolean>): Promise<boolean> {
    this.isBusy = true;
    this.problem = null;
    try {
      return await work();
    } catch (error) {
      this.problem = asProblem(error);
      return false;
    } finally {
      this.isBusy = false;
      this.answer.again();
      refreshProjects();
    }
  }

  /** Shows a policy at once; everything else follows with the next answer. */
  #take(policy: Policy): void {
    if (this.answer.value !== null) {
      this.answer.value = { ...this.answer.value, policy };
    }
  }
}
