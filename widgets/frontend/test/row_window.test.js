import assert from "node:assert/strict";
import { test } from "node:test";

import { RowStore } from "../src/row_store.js";
import { rowTop, scrollTo, seenRows, spacePixels } from "../src/row_window.js";

const row = (/** @type {number} */ number) => ({ key: String(number), cells: [] });
const rows = (/** @type {number} */ offset, /** @type {number} */ count) => Array.from({ length: count }, (_, place) => row(offset + place));

test("every row of a table that no browser could lay out can be scrolled to", () => {
  const extent = { row_count: 2_000_000, row_height: 26, fits: 10 };
  assert.ok(spacePixels(extent) < 16_000_000);
  for (const wanted of [0, 1, 999_999, 1_999_999]) {
    const top = scrollTo(extent, wanted, wanted ? 0 : spacePixels(extent)) ?? 0;
    const [first, last] = seenRows(extent, top);
    assert.ok(first <= wanted && wanted < last, `${wanted} is not in ${first} to ${last}`);
    assert.ok(Math.abs(rowTop(extent, first, first, top) - top) < 1);
  }
});

test("a row that is seen is not scrolled to", () => {
  const extent = { row_count: 100, row_height: 20, fits: 10 };
  assert.equal(scrollTo(extent, 9, 0), null);
  assert.equal(scrollTo(extent, 10, 0), 20);
  assert.equal(scrollTo(extent, 3, 400), 60);
  assert.deepEqual(seenRows({ row_count: 0, row_height: 20, fits: 1 }, 0), [0, 0]);
});

test("rows of an older order never replace newer ones", () => {
  const store = new RowStore();
  assert.ok(store.take({ number: 2, offset: 0, row_count: 50, rows: rows(0, 5) }));
  assert.equal(store.take({ number: 1, offset: 0, row_count: 9, rows: rows(100, 5) }), false);
  assert.equal(store.rows.get(0)?.key, "0");
  assert.equal(store.row_count, 50);
  store.take({ number: 3, offset: 20, row_count: 40, rows: rows(20, 5) });
  assert.equal(store.rows.get(0), undefined);
  assert.equal(store.before.get(0)?.key, "0");
});

test("missing rows are asked for once, and again when the answer was lost", () => {
  const store = new RowStore();
  store.take({ number: 1, offset: 0, row_count: 500, rows: rows(0, 60) });
  assert.equal(store.missing(10, 30), null);
  assert.deepEqual(store.missing(200, 210), { offset: 176, count: 58, number: 1 });
  assert.equal(store.missing(200, 210), null);
  store.forget();
  assert.deepEqual(store.missing(200, 210), { offset: 176, count: 58, number: 1 });
  store.take({ number: 1, offset: 176, row_count: 500, rows: rows(176, 58) });
  assert.equal(store.missing(200, 210), null);
});
