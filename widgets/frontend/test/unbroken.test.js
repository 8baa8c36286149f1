import assert from "node:assert/strict";
import { test } from "node:test";

import { unbroken } from "../src/unbroken.js";

const kept = (/** @type {string} */ text) =>
  [unbroken(text)].flat().flatMap((part) => (typeof part === "string" ? [] : [/** @type {any} */ (part).props.children]));

test("short literals of a sentence stay whole, and nothing of it is lost", () => {
  assert.deepEqual(kept("at <= '2026-09-09' and at > '2026-09-01'"), ["'2026-09-09'", "'2026-09-01'"]);
  const parts = [unbroken("at in ('2026-09-09')")].flat().map((part) => (typeof part === "string" ? part : /** @type {any} */ (part).props.children));
  assert.equal(parts.join(""), "at in ('2026-09-09')");
});

test("apostrophes and long texts are no such literals", () => {
  assert.deepEqual(kept("the table's bounds and the column's"), []);
  assert.deepEqual(kept(`a = '${"x".repeat(60)}'`), []);
});
