/// <reference types="vitest/config" />
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

const STATIC = fileURLToPath(new URL("../src/pastwise/workbench/static", import.meta.url));
const SERVICE = process.env.PASTWISE_SERVICE ?? "http://127.0.0.1:8765";
const PACKAGE = /^[^\0]*\/node_modules\/(?:@[^/]+\/)?[^/]+/;
const COMPRESSIBLE = /\.(html|js|css|svg|txt)$/;

/** Whether a module belongs to the page itself: all but the screens after the first step. */
function isNoStep(id: string): boolean {
  return !/\/src\/screens\/(?!Home\.|home\/|Log\.|log\/)/.test(id);
}

/** Puts the licences of all packages that the page has parts of next to it. */
function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const folders = new Set<string>();
      for (const id of this.getModuleIds()) {
        const [folder] = PACKAGE.exec(id) ?? [];
        if (folder !== undefined) {
          folders.add(folder);
        }
      }
      for (const folder of folders) {
        const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
        if (file === undefined) {
          this.error(`${folder} has no licence file`);
        }
        const source = readFileSync(join(folder, file), "utf-8");
        this.emitFile({ type: "asset", fileName: `licences/${basename(folder)}.txt`, source });
      }
    },
  };
}

/** Writes a .gz and a .br next to every text file, so that the server compresses nothing. */
function precompressed(): Plugin {
  return {
    name: "precompressed",
    apply: "build",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        for (const [name, output] of Object.entries(bundle)) {
          if (!COMPRESSIBLE.test(name)) {
            continue;
          }
          const content = output.type === "chunk" ? output.code : output.source;
          const bytes = Buffer.from(content);
          const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
          const gzipped = gzipSync(bytes, { level: 9 });
          const brotlied = brotliCompressSync(bytes, quality);
          this.emitFile({ type: "asset", fileName: `${name}.gz`, source: gzipped });
          this.emitFile({ type: "asset", fileName: `${name}.br`, source: brotlied });
        }
      },
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [svelte(), licences(), precompressed()],
  build: {
    outDir: STATIC,
    emptyOutDir: true,
    // The content security policy allows no data: fonts, so nothing is inlined.
    assetsInlineLimit: 0,
    // One style for all screens, and a script for each next to that of the page: a first load is
    // short and has few requests.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // A slow machine is no reason for a warning.
      checks: { bundlerTimings: false },
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: "index", test: isNoStep, priority: 2 },
            { name: "index", test: /./, minShareCount: 2, priority: 1 },
          ],
        },
        entryFileNames: "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  server: {
    host: "127.0.0.1",
    proxy: {
      "/v1": SERVICE,
      "/livez": SERVICE,
      "/readyz": SERVICE,
      "/problems": SERVICE,
    },
  },
  test: {
    include: ["tests/**/*.test.ts"],
  },
});
