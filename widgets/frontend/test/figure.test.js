import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { makeTraits } from "./sample.js";
import { during, showPage } from "./view.js";

const FIGURE = "[data-figure='partitions.calendar']";
/** @type {Awaited<ReturnType<typeof showPage>>} */
let page;

beforeEach(async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  page = await showPage();
  layOut(670);
});
afterEach(async () => {
  await page.leave();
  mock.timers.reset();
});

/** Give the svg, 670 wide as it is drawn, its place on the page. */
function layOut(/** @type {number} */ width) {
  page.find(`${FIGURE} > svg`).getBoundingClientRect = () => ({ left: 100, top: 50, width, height: width / 4 });
}

const point = (/** @type {string} */ kind, /** @type {string} */ selector, /** @type {number} */ x, /** @type {number} */ y, more = {}) =>
  during(() => page.find(selector).dispatchEvent(new PointerEvent(kind, { clientX: x, clientY: y, button: 0, bubbles: true, pointerId: 1, ...more })));

/** From one point of the page to another. */
async function drag(/** @type {[number, number]} */ from, /** @type {[number, number]} */ to) {
  await point("pointerdown", `${FIGURE} [data-key]`, ...from);
  await point("pointermove", FIGURE, ...to);
  await point("pointerup", FIGURE, ...to);
}

test("a drag is sent as shares of the plot, at the size that the figure has on the page", async () => {
  layOut(335);
  // The plot begins at 36, 6 and is 440 by 154; the page shows it half as large.
  await drag([100 + 18 + 55, 50 + 3 + 7.7], [100 + 18 + 110, 50 + 3 + 38.5]);
  assert.deepEqual(page.sent("partitions.calendar.mark"), [{ plot: "days", x: [0.25, 0.5], y: [0.1, 0.5] }]);
  assert.deepEqual(page.sent("partitions.calendar.choose"), []);
});

test("what was dragged stays until the kernel has heard of it, whatever it draws before", async () => {
  await drag([150, 60], [250, 120]);
  await page.set("part_partitions", { ...makeTraits(1400).part_partitions, caption: "an earlier answer" });
  assert.ok(page.find(".icestats-drag"));
  await page.hear();
  assert.equal(page.el.querySelector(".icestats-drag"), null);
});

test("a press that does not move chooses the mark, with Control it adds", async () => {
  const mark = `${FIGURE} [data-key=day-9]`;
  await point("pointerdown", mark, 150, 60);
  await point("pointermove", mark, 151, 61);
  await point("pointerup", FIGURE, 151, 61, { ctrlKey: true });
  assert.deepEqual(page.sent("partitions.calendar.choose"), [{ key: "day-9", add: true }]);
  assert.deepEqual(page.sent("partitions.calendar.mark"), []);
});

test("Escape ends a drag without a mark", async () => {
  await point("pointerdown", `${FIGURE} [data-key]`, 150, 60);
  await point("pointermove", FIGURE, 250, 120);
  await page.press(FIGURE, "Escape");
  await point("pointerup", FIGURE, 250, 120);
  assert.deepEqual(page.sent("partitions.calendar.mark"), []);
});

test("with the zoom tool a drag zooms, once", async () => {
  await page.click("[data-part=partitions] [aria-label^=Zoom]");
  await drag([150, 60], [250, 120]);
  assert.equal(page.sent("partitions.calendar.zoom").length, 1);
  await drag([150, 60], [250, 120]);
  assert.equal(page.sent("partitions.calendar.mark").length, 1);
  await page.click("[data-part=partitions] [aria-label='Show everything again']");
  assert.equal(page.sent("partitions.calendar.reset").length, 1);
});

test("a tooltip is there at once, and is text", async () => {
  await point("pointermove", `${FIGURE} [data-key=day-9]`, 150, 60);
  assert.match(page.find(".icestats-tip").textContent, /^day 9: \d+ MB$/);
  assert.equal(page.el.querySelector(`${FIGURE} title`), null);
  assert.match(page.find(`${FIGURE} [data-key=day-9]`).getAttribute("aria-label"), /^day 9/);
});

test("a figure that has not changed is not drawn again", async () => {
  const before = page.find(`${FIGURE} > svg`);
  await page.set("part_partitions", { ...makeTraits(1400).part_partitions, caption: "other words" });
  assert.equal(page.find(`${FIGURE} > svg`), before);
});

test("a typed range is sent when it is entered, a log switch at once", async () => {
  await page.set("tab", "columns");
  await page.type("[data-part=histogram] input[aria-label^=From]", "0.5");
  await page.type("[data-part=histogram] input[aria-label^=To]", "1e3");
  await during(() => page.find("[data-part=histogram] form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })));
  assert.deepEqual(page.sent("histogram.bars.range"), [{ lower: "0.5", upper: "1e3" }]);
  await page.click("[data-part=histogram] input[type=checkbox]");
  assert.deepEqual(page.sent("histogram.bars.log"), [{ on: true }]);
});

test("a range that a person has come to stays, whatever is drawn meanwhile, until they leave it", async () => {
  const from = "[data-part=histogram] input[aria-label^=From]";
  const draw = (/** @type {string} */ lower) => {
    const { part_histogram: part } = makeTraits(1400);
    const blocks = part.blocks.map((/** @type {any} */ block) => ("typed" in block ? { ...block, typed: { lower, upper: "9" } } : block));
    return page.set("part_histogram", { ...part, blocks });
  };
  await page.set("tab", "columns");
  await draw("1");
  await during(() => page.find(from).focus());
  await draw("2");
  assert.equal(page.find(from).value, "1");
  await during(() => page.find(from).blur());
  assert.equal(page.find(from).value, "2");
  assert.deepEqual(page.sent("histogram.bars.range"), []);
});
