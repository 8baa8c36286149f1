import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import explorer from "../src/explorer.js";
import { fillingParts } from "../src/shell.js";
import { makeTraits } from "./sample.js";
import { during, showPage } from "./view.js";

/** @type {Awaited<ReturnType<typeof showPage>>} */
let page;

beforeEach(async () => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  page = await showPage();
});
afterEach(async () => {
  await page.leave();
  mock.timers.reset();
});

const shown = () => [...page.el.querySelectorAll("[data-part]")].map((part) => part.getAttribute("data-part"));

test("arrow keys walk over the tabs; the page shows a tab before the kernel has heard of it", async () => {
  await page.press("[role=tablist]", "ArrowRight");
  assert.deepEqual(page.sent("page.tab"), [{ name: "columns" }]);
  assert.deepEqual(shown(), ["columns", "histogram"]);
  await page.set("part_tree", { ...makeTraits(1400).part_tree, caption: "an answer on its way" });
  assert.deepEqual(shown(), ["columns", "histogram"]);
  await page.press("[role=tablist]", "Home");
  await page.set("tab", "columns");
  assert.deepEqual(shown(), ["partitions", "findings", "estimates", "tree"]);
  await page.press("[role=tablist]", "End");
  assert.equal(page.find("[role=tab][aria-selected=true]").tabIndex, 0);
});

test("a part with nothing to show is a line, or is not there", async () => {
  assert.match(page.find("[data-part=estimates]").textContent, /No filter yet/);
  await page.set("part_estimates", { name: "estimates", caption: "", blocks: [], is_busy: false });
  assert.deepEqual(shown(), ["partitions", "findings", "tree"]);
  await page.set("part_estimates", { name: "estimates", caption: "", blocks: [], is_busy: true });
  assert.equal(page.find("[data-part=estimates]").getAttribute("aria-busy"), "true");
});

test("what takes long says for how many seconds", async () => {
  const shown = (/** @type {string} */ text) => ({ name: "estimates", caption: "", blocks: [{ is: "text", text, tone: "busy" }], is_busy: true });
  const said = () => page.find("[data-part=estimates] .is-busy").textContent;
  await page.set("part_estimates", shown("Counting …"));
  await during(() => mock.timers.tick(2_000));
  assert.equal(said(), "Counting …");
  for (let second = 0; second < 10; second++) await during(() => mock.timers.tick(1_000));
  assert.equal(said(), "Counting … 12 s");
  await page.set("part_estimates", shown("Reading …"));
  assert.equal(said(), "Reading …");
});

test("a part is collapsed at once, and as the kernel says once it has heard of it", async () => {
  await page.click("[data-part=tree] h3 button");
  assert.equal(page.el.querySelector("[data-part=tree] .icestats-blocks"), null);
  assert.deepEqual(page.sent("page.collapse"), [{ part: "tree", collapsed: true }]);
  await page.hear();
  assert.ok(page.el.querySelector("[data-part=tree] .icestats-blocks"));
});

test("a button leads to a part of another tab once that is open", async () => {
  /** @type {string[]} */
  const seen = [];
  const scroll = mock.method(window.HTMLElement.prototype, "scrollIntoView", /** @this {any} */ function () { seen.push(this.dataset.part ?? ""); });
  await page.receive({ kind: "part", part: "histogram" });
  assert.deepEqual(seen, []);
  await page.set("tab", "columns");
  assert.equal(seen.at(-1), "histogram");
  const change = (/** @type {string} */ caption) => page.set("part_columns", { ...makeTraits(1400).part_columns, caption });
  const before = seen.length;
  await change("what stands above has grown");
  assert.ok(seen.length > before);
  await during(() => page.find("[data-part=histogram]").dispatchEvent(new PointerEvent("pointerdown", { bubbles: true })));
  const until = seen.length;
  await change("a person has gone on");
  assert.equal(seen.length, until);
  scroll.mock.restore();
});

test("two neighbours share a line, a lone one takes it", () => {
  const parts = [["a", false], ["b", false], ["c", false], ["d", true], ["e", false]].map(([name, is]) => ({ name: String(name), isWide: is === true }));
  assert.deepEqual([...fillingParts(parts, true)], ["c", "d", "e"]);
  assert.equal(fillingParts(parts, false).size, 5);
});

test("strings are texts everywhere", async () => {
  assert.match(page.find("[data-card=overlap]").textContent, /<img src=x/);
  await page.set("tab", "statistics");
  await page.click("[data-part=compute] [aria-haspopup]");
  assert.match(page.find("[role=dialog]").textContent, /<img src=x/);
  assert.equal(page.el.querySelector("img"), null);
});

test("a form sends each change as a bare value, shown before the kernel answers", async () => {
  await page.set("tab", "statistics");
  await page.click("[data-part=compute] .icestats-form > label input[type=checkbox]");
  await page.type("[data-part=compute] input[type=number]", "400");
  await page.set("part_compute", makeTraits(1400).part_compute);
  assert.equal(page.find("[data-part=compute] input[type=number]").value, "400");
  await during(() => mock.timers.tick(400));
  assert.deepEqual([page.sent("compute.partitions"), page.sent("compute.k")], [[false], [400]]);
  await page.click("[data-part=compute] .is-primary");
  assert.deepEqual(page.sent("compute.go"), [{}]);
});

test("several views of one model have acts of their own", async () => {
  const other = document.body.appendChild(document.createElement("div"));
  const leave = /** @type {() => void} */ (await during(() => explorer.render({ model: page.model, el: other })));
  await page.press("[role=tablist]", "ArrowRight");
  assert.equal(other.querySelector("[aria-selected=true]")?.textContent, "Overview");
  await page.set("tab", "columns");
  await page.hear();
  assert.match(other.querySelector("[aria-selected=true]")?.textContent ?? "", /^Columns/);
  await page.receive({ kind: "code", text: "import icestats", view: page.model.sent.at(-1).view });
  assert.ok(page.el.querySelector(".icestats-reply"));
  assert.ok(!other.querySelector(".icestats-reply"));
  await page.set("tab", "overview");
  const groups = [page.el, other].map((el) => el.querySelector("input[type=radio]")?.getAttribute("name"));
  assert.ok(groups[0]);
  assert.notEqual(groups[0], groups[1]);
  await during(() => leave());
  assert.equal(other.childNodes.length, 0);
});

test("a view that is taken away hears of nothing any more", async () => {
  const heard = page.model.sent.length;
  await page.leave();
  await page.set("tab", "columns");
  await page.receive({ kind: "code", text: "import icestats" });
  await during(() => mock.timers.tick(60_000));
  assert.equal(page.model.sent.length, heard);
  assert.equal(page.el.childNodes.length, 0);
});

test("the picture of a saved notebook is hidden, unless no kernel has ever answered", async () => {
  const isHidden = () => [...document.head.querySelectorAll("style")].some((style) => style.textContent?.includes('data-icestats-picture="saved"'));
  await page.leave();
  page = await showPage({ picture_id: "saved" });
  assert.ok(isHidden());
  await during(() => mock.timers.tick(8_000));
  assert.ok(!isHidden());
  await page.hear();
  assert.ok(isHidden());
});
