import openapiTS, { astToString } from "openapi-typescript";
import { expect, test } from "vitest";

import { python } from "./python";

const NOTE = "// Generated from the service's types by: npm run types\n\n";

// A difference means that the service has changed: `npm run types` takes it over, and
// `npm run check` then shows what the pages have to change.
test("types of the pages are those of the service", { timeout: 120_000 }, async () => {
  const document = python("frontend/tests/describe.py");
  const types = astToString(await openapiTS(document));
  await expect(NOTE + types).toMatchFileSnapshot("../src/lib/schema.d.ts");
});
