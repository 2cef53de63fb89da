/**
 * The log screen's model: a log, the mapping under edit, and what the service makes of it.
 *
 * The mapping is in the address (`c`), or it is the one that the log starts with. The marked row
 * (`r`), the first row of the page (`o`) and the open finding (`f`) are in the address, too. Every
 * change asks for the rows and for a dry run, the newest one wins. What was read last stays until
 * something newer is known, also where the newest mapping is refused.
 */

import { onDestroy, untrack } from "svelte";

import { address, go, unpack, update } from "../../lib/address.svelte";
import { announce } from "../../lib/announce.svelte";
import { Answer } from "../../lib/answer.svelte";
import { asProblem, get, path, post, Problem, put } from "../../lib/api";
import { latest } from "../../lib/latest";
import { refreshProjects, reloadProjects } from "../../lib/projects.svelte";
import type { Mapping, MappingAnswer, Project, Rows, Validation } from "../../lib/types";
import { compact, guessedMapping, inAddress, isSame, lackOf, mappingOf, textOf } from "./mapping";
import { byNumber, ordered } from "./order";
import { columnOrder } from "./roles";
import { usableSentence } from "./words";

/** Pause between two entries of a moving edge in the address: browsers allow some 20 a second. */
const PAUSE_MS = 100;

/** Rows of a page of the preview: a few screens, and quick to read from a file of any size. */
export const PAGE = 100;

/** Rows above which finding the next states of a page takes noticeably longer than its text. */
const LONG = 100_000;

/** More rows than any log has. */
const ALL_ROWS = 2 ** 52;

interface PageQuestion {
  offset: number;
  /** Null: without next states, which is quicker. */
  mapping: string | null;
}

interface Check {
  mapping: string;
  /** Null: the first rows, of a log that is long. */
  rows: number | null;
}

interface Order {
  states: string[];
  actions: string[];
}

export class LogModel {
  readonly id: string;
  readonly project: Answer<string, Project>;
  readonly page: Answer<PageQuestion, Rows>;
  readonly checked: Answer<Check, Validation>;

  /** Whether changes are tried on all rows of a long log, and not on the first ones. */
  triesAll = $state(false);

  /** Whether the log is being counted, and what went wrong with that. */
  isCounting = $state(false);
  countingProblem: Problem | null = $state.raw(null);
  orderProblem: Problem | null = $state.raw(null);
  openingProblem: Problem | null = $state.raw(null);

  /** The mapping under edit; null until the log is known. */
  mapping: Mapping | null = $derived.by(() => {
    const project = this.project.value;
    return project === null ? null : (this.#moving ?? mappingOf(address.query.c, project));
  });
  text = $derived(this.mapping === null ? null : textOf(this.mapping));

  /** Whether the log was counted by this mapping, as it is now. */
  isSaved = $derived.by(() => {
    const project = this.project.value;
    if (project === null || project.mapping === null || project.validation === null) {
      return false;
    }
    return this.mapping !== null && isSame(this.mapping, project.mapping);
  });
  isGuess = $derived.by(() => {
    const project = this.project.value;
    const guess = project === null ? null : guessedMapping(project.guess);
    return guess !== null && this.mapping !== null && isSame(this.mapping, guess);
  });

  /** What is usable by the last mapping that could be read. */
  validation: Validation | null = $derived.by(() => {
    const saved = this.project.value?.validation ?? null;
    return this.isSaved ? saved : (this.checked.value ?? saved);
  });
  problem: Problem | null = $derived.by(() => {
    return this.isSaved || this.lack !== null ? null : this.checked.problem;
  });
  /** Whether the log cannot be read by the mapping; a service that is away says nothing on that. */
  isRefused: boolean = $derived(this.problem !== null && this.problem.status === 422);
  /** Why no rows can be read by any mapping, as where the file is gone or another one. */
  unreadable: Problem | null = $derived.by(() => {
    return this.page.problem?.status === 422 ? this.page.problem : null;
  });
  lack = $derived(this.mapping === null ? null : lackOf(this.mapping));
  /** Whether `validation` belongs to the mapping under edit. */
  isCurrent: boolean = $derived.by(() => {
    const isChecked = this.problem === null && this.checked.argument?.mapping === this.text;
    return this.isSaved || isChecked;
  });

  /** Names of columns, those with a role first; they keep their places while roles change. */
  columns: string[] = $derived.by(() => {
    const project = this.project.value;
    if (project === null) {
      return [];
    }
    const first = untrack(() => mappingOf(address.query.c, project));
    return columnOrder(project.columns.map((column) => column.name), first);
  });

  /** How often a row was shown on request. */
  shows = $state(0);

  /** The row that is marked, counted from 1, and the offset of the page. */
  row = $derived(wholeNumber(address.query.r));
  offset = $derived.by(() => {
    const start = wholeNumber(address.query.o);
    if (start !== null) {
      return start - (start % PAGE);
    }
    return this.row === null ? 0 : Math.floor((this.row - 1) / PAGE) * PAGE;
  });

  /** A mapping on its way to the address, while an edge of a bin moves. */
  #moving: Mapping | null = $state.raw(null);
  #timer: ReturnType<typeof setTimeout> | undefined;

  #order: Order | null = $state.raw(null);
  order: Order = $derived.by(() => {
    const saved = this.#order ?? this.project.value?.order ?? undefined;
    const found = this.validation;
    const states = (found?.states ?? []).map((state) => state.key);
    const actions = (found?.actions ?? []).map((action) => action.key);
    return {
      states: ordered(byNumber(states), saved?.states),
      actions: ordered(byNumber(actions), saved?.actions),
    };
  });
  #ordering = latest((order: Order) => put(path`/v1/projects/${this.id}/order`, order), {
    receive: () => (this.orderProblem = null),
    fail: (error) => (this.orderProblem = asProblem(error)),
  });

  /** Made while a component is set up. */
  constructor(id: string) {
    this.id = id;
    this.project = new Answer((log, signal) => get<Project>(path`/v1/projects/${log}`, { signal }));
    this.page = new Answer((question, signal) => pageOf(id, question, signal));
    this.checked = new Answer((check, signal) => validationOf(id, check, signal));
    this.project.ask(id);
    onDestroy(() => this.#rest());

    $effect(() => {
      const mapping = this.text;
      const offset = this.offset;
      untrack(() => this.#showRows(mapping, offset));
    });
    $effect(() => {
      const mapping = this.isSaved ? null : this.text;
      const rows = this.triesAll ? ALL_ROWS : null;
      untrack(() => this.#check(mapping, rows));
    });
    $effect(() => {
      if (this.validation !== null && this.isCurrent) {
        announce(usableSentence(this.validation));
      }
    });
  }

  /** Whether the log is a table; counts have none. */
  get hasTable(): boolean {
    return this.project.value !== null && this.project.value.kind !== "counts";
  }

  /** Edits the mapping; `replace` while an edge of a bin moves. */
  change(mapping: Mapping, options = { replace: false }): void {
    const project = this.project.value;
    if (project === null) {
      return;
    }
    if (options.replace) {
      this.#moving = compact(mapping);
      this.#timer ??= setTimeout(() => this.#write(project), PAUSE_MS);
    } else {
      this.#rest();
      update({ c: inAddress(mapping, project) });
    }
  }

  /** Writes a moving mapping to the address, and again where the browser wants a pause first. */
  #write(project: Project): void {
    this.#timer = undefined;
    if (this.#moving === null) {
      return;
    }
    const text = inAddress(this.#moving, project);
    update({ c: text }, { replace: true });
    if ((address.query.c ?? null) === text) {
      this.#moving = null;
    } else {
      this.#timer = setTimeout(() => this.#write(project), PAUSE_MS);
    }
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#moving = null;
  }

  guessAgain(): void {
    const project = this.project.value;
    if (project !== null) {
      this.change(guessedMapping(project.guess));
    }
  }

  /** Shows a row of the log, counted from 1; also one that was scrolled away since. */
  show(row: number): void {
    this.shows += 1;
    update({ r: String(row), o: null });
  }

  setOrder(order: Order): void {
    this.#order = order;
    this.#ordering.ask(order);
  }

  /** Counts the log by the mapping, and goes on to the goal. */
  async use(): Promise<void> {
    if (this.isSaved) {
      go("policy");
      return;
    }
    this.isCounting = true;
    this.countingProblem = null;
    try {
      const mapping = this.mapping;
      await post<MappingAnswer>(path`/v1/projects/${this.id}/mapping`, mapping);
      await reloadProjects();
      go("policy");
    } catch (error) {
      this.countingProblem = asProblem(error);
    } finally {
      this.isCounting = false;
    }
  }

  /** Opens a file again that was moved, or has changed since it was read. */
  async readAgain(): Promise<void> {
    const project = this.project.value;
    if (project === null) {
      return;
    }
    this.openingProblem = null;
    try {
      await post<Project>("/v1/projects", { path: project.source });
    } catch (error) {
      this.openingProblem = asProblem(error);
    }
    this.project.again();
    this.page.again();
    refreshProjects();
  }

  #showRows(mapping: string | null, offset: number): void {
    if (mapping === null || !this.hasTable) {
      return;
    }
    // The text of a page that is not there yet does not wait for the next states of a long log.
    const isLong = (this.project.value?.rows ?? Infinity) > LONG;
    const isHere = this.page.value?.offset === offset;
    if (!isHere && (isLong || this.lack !== null)) {
      this.page.ask({ offset, mapping: null });
    }
    if (this.lack === null) {
      this.page.ask({ offset, mapping });
    }
  }

  #check(mapping: string | null, rows: number | null): void {
    this.countingProblem = null;
    if (mapping === null || !this.hasTable || this.lack !== null) {
      this.checked.stop();
    } else {
      this.checked.ask({ mapping, rows });
    }
  }
}

function wholeNumber(text: string | undefined): number | null {
  const number = Number(text);
  return text !== undefined && Number.isInteger(number) && number >= 0 ? number : null;
}

/** A page of rows with their next states; only the rows where the mapping is refused. */
async function pageOf(id: string, question: PageQuestion, signal: AbortSignal): Promise<Rows> {
  const rows = path`/v1/projects/${id}/rows?offset=${question.offset}&limit=${PAGE}`;
  if (question.mapping !== null) {
    try {
      return await get<Rows>(rows + path`&mapping=${question.mapping}`, { signal });
    } catch (error) {
      const isRefused = error instanceof Problem && error.status >= 400 && error.status < 500;
      if (!isRefused) {
        throw error;
      }
    }
  }
  const plain = await get<Rows>(rows, { signal });
  return { ...plain, then: [] };
}

async function validationOf(id: string, check: Check, signal: AbortSignal): Promise<Validation> {
  const dryRun = path`/v1/projects/${id}/mapping?dry_run=true`;
  const address = check.rows === null ? dryRun : dryRun + path`&first=${check.rows}`;
  const answer = await post<MappingAnswer>(address, unpack<Mapping>(check.mapping), { signal });
  return answer.validation;
}
