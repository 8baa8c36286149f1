import "./page.js";

import assert from "node:assert/strict";
import { test } from "node:test";

import { countLines, fitColumns, squeeze } from "../src/grid_columns.js";
import { splitMiddle } from "../src/middle.js";
import { fileName } from "../src/saving.js";
import { buildTsv, quote } from "../src/tsv.js";

test("a long name keeps the end that tells it apart, a short one is whole", () => {
  for (const text of ["price", "2026-09-01 09:58:32 UTC"]) assert.deepEqual(splitMiddle(text), [text, ""]);
  for (const [text, tail] of [
    ["person.address.city", "address.city"],
    ["data/measurement_000003.parquet", "000003.parquet"],
    ["measurementmeasurement7", "asurement7"],
    ["manifests by partition summaries", " summaries"],
    ["frequent-items-by-partition", "by-partition"],
    ["temperature_in_building_007_floor_3_celsius", "007_floor_3_celsius"],
  ]) {
    assert.deepEqual(splitMiddle(text), [text.slice(0, -tail.length), tail]);
  }
});

test("a name with signs beyond 16 bits is not cut through one", () => {
  assert.equal(splitMiddle("🜁".repeat(20)).join(""), "🜁".repeat(20));
  assert.match(splitMiddle("🜁".repeat(20))[1], /^🜁+$/u);
});

test("what a spreadsheet would run is copied as a text, numbers stay numbers", () => {
  for (const text of ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", " =1"]) assert.equal(quote(text), `'${text}`);
  for (const text of ["-2", "+1,234", "-1.5e-7", "-3.2%", "+12 MB", "−4", "a=b", ""]) assert.equal(quote(text), text);
});

test("a tab or a line break inside a cell does not begin another cell", () => {
  assert.equal(buildTsv([["a", "b"], ["1\t2", "x\r\ny"]]), "a\tb\n1 2\tx y");
});

test("a file's name has no place in it", () => {
  assert.equal(fileName("../../etc/passwd", "svg"), "etc-passwd.svg");
  assert.equal(fileName(undefined, "png"), "icestats.png");
  assert.equal(fileName("größe von price", "png"), "größe-von-price.png");
});

test("text gives way where columns are a little too wide together, numbers do not", () => {
  const widths = ["minmax(184px,1fr)", "100px", "minmax(134px,2fr)"];
  const seen = /** @type {import("../src/grid_columns.js").SeenColumn[]} */ (widths.map((width, place) => (
    { column: { name: "", title: "", width, align: place === 1 ? "end" : "start" }, place })));
  assert.equal(squeeze(widths, seen, 418), widths);
  assert.deepEqual(squeeze(widths, seen, 343), ["minmax(140px,1fr)", "100px", "minmax(102px,2fr)"]);
  assert.equal(squeeze(widths, seen, 300), widths);
});

test("a column that need not be seen at once goes where there is no room for all, but none that a person has chosen", () => {
  const seen = /** @type {import("../src/grid_columns.js").SeenColumn[]} */ ([
    { column: { name: "a", title: "", width: "minmax(120px,1fr)" }, place: 0 },
    { column: { name: "b", title: "", width: "100px", align: "end" }, place: 1 },
    { column: { name: "c", title: "", width: "120px", roomy: true }, place: 2 },
  ]);
  const names = (/** @type {number} */ room, isChosen = false) => fitColumns(seen, [], room, isChosen).seen.map(({ column }) => column.name);
  for (const room of [340, 300]) assert.deepEqual(names(room), ["a", "b", "c"]);
  for (const room of [220, 190]) assert.deepEqual(names(room), ["a", "b"]);
  // Where fewer columns do not fit either, all are there, and are scrolled to.
  assert.deepEqual(names(100), ["a", "b", "c"]);
  assert.deepEqual(names(190, true), ["a", "b", "c"]);
});

test("names are not cut where other texts can give way, or a column go", () => {
  const seen = /** @type {import("../src/grid_columns.js").SeenColumn[]} */ ([
    { column: { name: "a", title: "", width: "minmax(84px,1fr)", name_pixels: 180 }, place: 0 },
    { column: { name: "b", title: "", width: "100px" }, place: 1 },
    { column: { name: "c", title: "", width: "120px", roomy: true }, place: 2 },
  ]);
  const rows = [{ key: "", cells: [{ t: "a name of 20 letters" }, { t: "" }, { t: "" }] }];
  const fitted = (/** @type {number} */ room) => fitColumns(seen, rows, room, false).widths.join(" ");
  assert.equal(fitted(400), "minmax(172px,1fr) 100px 120px");
  assert.equal(fitted(350), "minmax(172px,1fr) 87px 90px");
  assert.equal(fitted(330), "minmax(172px,1fr) 100px");
  // As the last they give way, too, rather than that the table is scrolled.
  assert.equal(fitted(220), "minmax(136px,1fr) 84px");
});

test("a text that decides takes the lines that it needs, and fewer where there is room", () => {
  const seen = [{ column: { name: "a", title: "", width: "minmax(100px,1fr)" }, place: 0 }, { column: { name: "why", title: "", width: "minmax(260px,3fr)", wraps: true }, place: 1 }];
  const rows = [{ key: "r", cells: [{ t: "name" }, { t: "x".repeat(200) }] }];
  const widths = seen.map(({ column }) => column.width);
  assert.deepEqual([400, 1000, 2400].map((room) => countLines(seen, widths, rows, room)), [6, 3, 1]);
  assert.equal(countLines(seen.slice(0, 1), widths.slice(0, 1), rows, 400), 0);
});
