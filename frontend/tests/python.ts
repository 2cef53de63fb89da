/** Runs Python with pastwise: PASTWISE_PYTHON, or the environment of this clone. */

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("../..", import.meta.url));

export function python(script: string, ...args: string[]): string {
  const command = process.env.PASTWISE_PYTHON ?? `${HERE}.venv/bin/python`;
  return execFileSync(command, [`${HERE}${script}`, ...args], {
    encoding: "utf-8",
    maxBuffer: 2 ** 27,
  });
}
