/** Runs Python with the pastwise of this clone: PASTWISE_PYTHON, or the interpreter of `.venv`. */

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export function python(script: string, ...args: string[]): string {
  const command = process.env.PASTWISE_PYTHON ?? `${ROOT}.venv/bin/python`;
  if (!existsSync(command)) {
    throw new Error(`${command} is missing: run make test, or set PASTWISE_PYTHON`);
  }
  return execFileSync(command, [`${ROOT}${script}`, ...args], {
    encoding: "utf-8",
    env: { ...process.env, PYTHONPATH: `${ROOT}src` },
    maxBuffer: 2 ** 27,
  });
}
