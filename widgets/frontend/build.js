/**
 * Bundle src/ into the widget's static/: `node build.js` writes, `node build.js --check` says whether that is done.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const STATIC = join(HERE, "..", "icestats_widgets", "static");
const LIMIT_BYTES = 300_000;

const { outputFiles } = await build({
  absWorkingDir: HERE,
  // Paths of modules stand in the bundle: the same where node_modules is a link.
  preserveSymlinks: true,
  entryPoints: ["src/explorer.js", "src/explorer.css"],
  outdir: STATIC,
  bundle: true,
  write: false,
  format: "esm",
  target: ["es2022", "chrome120", "firefox121", "safari17"],
  charset: "utf8",
  legalComments: "inline",
  banner: { js: licences() },
});

const stale = outputFiles.filter(({ path, text }) => read(path) !== text).map(({ path }) => basename(path));
const large = outputFiles.filter(({ contents }) => contents.length > LIMIT_BYTES).map(({ path }) => basename(path));
if (large.length > 0) {
  end(`static/${large} has more than ${LIMIT_BYTES} bytes: see what src/ imports`);
} else if (!process.argv.includes("--check")) {
  outputFiles.forEach(({ path, contents }) => writeFileSync(path, contents));
} else if (stale.length > 0) {
  end(`static/${stale.join(" and static/")} is not what frontend/src/ gives: run make front`);
}

/** The licences of what is bundled, in the comment that no tool drops. */
function licences() {
  const preact = readFileSync(join(HERE, "node_modules", "preact", "LICENSE"), "utf8").trim();
  return `/*!\npreact:\n\n${preact}\n\nhtm:\n\nApache License, Version 2.0. Copyright 2018 Google Inc.\n*/`;
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** @param {string} message */
function end(message) {
  console.error(message);
  process.exitCode = 1;
}
