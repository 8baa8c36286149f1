import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { html, render } from "htm/preact";

import { GridRow } from "../src/grid_cell.js";
import { makeGrid, makeRow, makeTraits } from "./sample.js";
import { during, showPage } from "./view.js";

const GRID = "[data-part=tree]";
const rowOf = (/** @type {number} */ number) => `${GRID} [data-row="${number}"]`;
/** @type {Awaited<ReturnType<typeof showPage>>} */
let page;

beforeEach(async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  page = await showPage();
});
afterEach(async () => {
  await page.leave();
  mock.timers.reset();
});

const tree = (/** @type {object} */ more) => ({ ...makeTraits(1400).part_tree, blocks: [makeGrid(450_000, more)] });
const key = async (/** @type {number} */ number, /** @type {string} */ name) => {
  await during(() => page.find(rowOf(number)).focus());
  await page.press(rowOf(number), name);
};

/** Scroll as a person does. */
const scroll = (/** @type {number} */ top) =>
  during(() => {
    const box = page.find(`${GRID} .icestats-scroll`);
    box.scrollTop = top;
    box.dispatchEvent(new Event("scroll"));
  });

test("strings of a table are texts in its cells", () => {
  assert.equal(page.find(`${rowOf(3)} .icestats-cell-text`).textContent, "<img src=x onerror=alert(1)>");
  assert.equal(page.el.querySelector(`${GRID} img`), null);
});

test("only rows that are seen are drawn, and those that are not here are asked for", async () => {
  assert.ok(page.el.querySelectorAll(`${GRID} [data-row]`).length < 20);
  await scroll(26 * 1_000);
  assert.deepEqual(page.sent("tree.files.window"), [{ offset: 976, count: 59, number: 1 }]);
  assert.match(page.find(rowOf(1_000)).className, /is-pending/);
  const rows = Array.from({ length: 59 }, (_, place) => makeRow(976 + place));
  await page.receive({ kind: "rows", grid: "tree.other", offset: 976, row_count: 450_000, rows, number: 1 });
  assert.match(page.find(rowOf(1_000)).className, /is-pending/);
  await page.receive({ kind: "rows", grid: "tree.files", offset: 976, row_count: 450_000, rows, number: 1 });
  assert.match(page.find(rowOf(1_000)).textContent, /001000/);
});

test("rows of the order before are not mixed with those of the new one", async () => {
  await scroll(26 * 1_000);
  await page.set("part_tree", tree({ number: 2, row_count: 2_000, offset: 976, rows: [] }));
  const rows = Array.from({ length: 59 }, (_, place) => makeRow(976 + place));
  await page.receive({ kind: "rows", grid: "tree.files", offset: 976, row_count: 450_000, rows, number: 1 });
  assert.match(page.find(rowOf(1_000)).className, /is-pending/);
  assert.equal(page.sent("tree.files.window").at(-1).number, 2);
});

test("a lost answer is asked for again", async () => {
  await scroll(26 * 1_000);
  await during(() => mock.timers.tick(5_000));
  assert.equal(page.sent("tree.files.window").length, 2);
});

test("arrow keys walk, right and left open and close, Enter chooses as it is seen", async () => {
  await key(0, "ArrowDown");
  assert.equal(/** @type {HTMLElement} */ (document.activeElement).dataset.row, "1");
  await page.press(rowOf(1), "ArrowRight");
  await key(0, "ArrowRight");
  assert.deepEqual(page.sent("tree.files.open"), []);
  await key(0, "ArrowLeft");
  assert.deepEqual(page.sent("tree.files.open"), [{ key: "file-0", open: false }]);
  await key(2, "Enter");
  assert.deepEqual(page.sent("tree.files.choose"), [{ key: "file-2", is_selected: true, is_open: false }]);
});

test("a row that is chosen before it is here is chosen when it comes", async () => {
  await key(0, "End");
  assert.equal(/** @type {HTMLElement} */ (document.activeElement).dataset.row, "449999");
  await page.press(rowOf(449_999), "Enter");
  assert.deepEqual(page.sent("tree.files.choose"), []);
  const { offset, count } = page.sent("tree.files.window").at(-1);
  const rows = Array.from({ length: count }, (_, place) => makeRow(offset + place)).slice(0, 450_000 - offset);
  await page.receive({ kind: "rows", grid: "tree.files", offset, row_count: 450_000, rows, number: 1 });
  assert.deepEqual(page.sent("tree.files.choose"), [{ key: "file-449999", is_selected: false, is_open: false }]);
});

test("a click on a row that is not here yet counts when it comes", async () => {
  await scroll(26 * 1_000);
  await page.click(`${rowOf(1_003)} [role=gridcell]`);
  assert.deepEqual(page.sent("tree.files.choose"), []);
  const rows = Array.from({ length: 59 }, (_, place) => makeRow(976 + place));
  await page.receive({ kind: "rows", grid: "tree.files", offset: 976, row_count: 450_000, rows, number: 1 });
  assert.deepEqual(page.sent("tree.files.choose"), [{ key: "file-1003", is_selected: false, is_open: false }]);
});

test("a click on what was there before counts only if the same comes", async () => {
  await scroll(26 * 1_000);
  const rows = Array.from({ length: 59 }, (_, place) => makeRow(976 + place));
  await page.receive({ kind: "rows", grid: "tree.files", offset: 976, row_count: 450_000, rows, number: 1 });
  for (const [number, shift] of [[2, 1], [3, 0]]) {
    await page.set("part_tree", tree({ number }));
    assert.match(page.find(rowOf(1_003)).textContent, /1003/);
    await page.click(`${rowOf(1_003)} [role=gridcell]`);
    const moved = rows.map((_, place) => makeRow(976 + place + shift));
    await page.receive({ kind: "rows", grid: "tree.files", offset: 976, row_count: 450_000, rows: moved, number });
    assert.deepEqual(page.sent("tree.files.choose").map((act) => act.key), shift ? [] : ["file-1003"]);
    await page.receive({ kind: "rows", grid: "tree.files", offset: 976, row_count: 450_000, rows, number });
  }
});

test("a cell's button says its action, and does not choose the row", async () => {
  await page.click(`${rowOf(0)} .icestats-cell-button`);
  assert.deepEqual(page.sent("statistics.fill"), [{ key: "file-0", column: "state" }]);
  assert.deepEqual(page.sent("tree.files.choose"), []);
});

test("heads sort, and with Alt and an arrow they are resized", async () => {
  const head = `${GRID} [role=columnheader]:nth-child(2) button`;
  await page.click(head);
  assert.deepEqual(page.sent("tree.files.sort"), [{ column: "size" }]);
  await page.click(`${GRID} [role=columnheader]:nth-child(5) button`);
  assert.equal(page.sent("tree.files.sort").length, 1);
  await during(() => page.find(head).focus());
  await page.press(head, "ArrowRight", { altKey: true });
  assert.match(page.find(`${GRID} .icestats-grid`).getAttribute("style"), /minmax\(180px, 3fr\) 116px/);
});

test("F2 shows a whole row", async () => {
  await key(0, "F2");
  assert.match(page.find("[role=dialog]").textContent, /1,234,567 bytes/);
  await page.press("[role=dialog]", "Escape");
  assert.equal(page.el.querySelector("[role=dialog]"), null);
});

test("columns that are not chosen are gone at once, and stay so while the kernel has not heard of it", async () => {
  await page.click(`${GRID} [aria-label="Choose columns"]`);
  await during(() => page.find("[role=dialog] label:nth-child(4) input").click());
  const heads = () => [...page.el.querySelectorAll(`${GRID} [role=columnheader]`)].map((head) => head.getAttribute("title"));
  const left = ["Path below the table's location", "size", "records", "event_time", "statistics"];
  assert.deepEqual(heads(), left);
  await page.set("part_tree", tree({}));
  assert.deepEqual(heads(), left);
  assert.deepEqual(page.sent("tree.files.columns"), [{ names: ["name", "size", "records", "range", "state"] }]);
});

test("words typed into the search are sent once, after a pause", async () => {
  await page.type(`${GRID} input[type=search]`, "rec");
  await page.type(`${GRID} input[type=search]`, "records > 3");
  await during(() => mock.timers.tick(200));
  assert.deepEqual(page.sent("tree.files.search"), [{ text: "records > 3" }]);
});

test("a grid that shows all its rows leaves the wheel to the page", async () => {
  assert.equal(page.find(`${GRID} .icestats-scroll`).style.overflowY, "auto");
  await page.set("part_tree", tree({ number: 2, row_count: 3 }));
  assert.equal(page.find(`${GRID} .icestats-scroll`).style.overflowY, "hidden");
});

test("a card has no label for a cell without a value", async () => {
  const box = document.createElement("div");
  const names = ["file", "nulls", "lower"];
  const columns = names.map((name, place) => ({ place, column: { name, title: name } }));
  const row = { key: "f0", cells: [{ t: "a.parquet" }, { t: "" }, { t: "0.25" }] };
  for (const [isCard, expected] of [[true, ["lower"]], [false, []]]) {
    await during(() => render(html`<${GridRow} row=${row} number=${0} top=${0} height=${26} columns=${columns} isCard=${isCard} cut="" />`, box));
    assert.deepEqual([...box.querySelectorAll(".icestats-card-label")].map((label) => label.textContent), expected);
    assert.equal(box.querySelectorAll(".icestats-td").length, isCard ? 2 : 3);
  }
});
