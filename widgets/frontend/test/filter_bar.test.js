import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { during, showPage } from "./view.js";

const INPUT = "input[role=combobox]";
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

const pass = (/** @type {number} */ pauseMs) => during(() => mock.timers.tick(pauseMs));

/** Completions of what is in the line now. */
async function offer(/** @type {number} */ start, /** @type {string[]} */ ...texts) {
  await pass(60);
  const { number } = page.sent("query.complete").at(-1);
  await page.receive({ kind: "completions", number, start, items: texts.map((text) => ({ text })) });
  return number;
}

test("what is typed is sent once a person pauses, and at once by Enter", async () => {
  await page.type(INPUT, "pri");
  await pass(40);
  await page.type(INPUT, "price < 3");
  assert.deepEqual(page.sent("query.type"), []);
  await pass(60);
  assert.deepEqual(page.sent("query.type"), [{ text: "price < 3" }]);
  await page.type(INPUT, "price < 4");
  await page.press(INPUT, "Enter");
  await pass(500);
  assert.deepEqual(page.sent("query.type").length, 1);
  assert.deepEqual(page.sent("query.enter"), [{ text: "price < 4" }]);
});

test("the kernel's answer to what was typed before does not replace what is typed now", async () => {
  await page.type(INPUT, "pri");
  await pass(60);
  await page.type(INPUT, "price");
  await page.set("query", { text: "pri" });
  await page.hear();
  assert.equal(page.find(INPUT).value, "price");
  await pass(60);
  await page.set("query", { text: "price" });
  await page.hear();
  await page.set("query", { text: "price < 3 and day = 4" });
  assert.equal(page.find(INPUT).value, "price < 3 and day = 4");
});

test("Tab completes the word that was begun, and types on", async () => {
  await page.type(INPUT, "pr");
  await offer(0, "price", "pressure");
  assert.equal(page.find(INPUT).getAttribute("aria-expanded"), "true");
  await page.press(INPUT, "Tab");
  assert.equal(page.find(INPUT).value, "price");
  assert.equal(page.find(INPUT).selectionStart, 5);
  await pass(60);
  assert.deepEqual(page.sent("query.type").at(-1), { text: "price" });
});

test("what is typed on before the kernel answers narrows the list, and Tab takes what goes with it", async () => {
  await page.type(INPUT, "event_t");
  await offer(0, "event_time", "event_type");
  await page.type(INPUT, "event_ty");
  assert.deepEqual([...page.el.querySelectorAll("[role=option]")].map((option) => option.textContent), ["event_type"]);
  await page.press(INPUT, "Tab");
  assert.equal(page.find(INPUT).value, "event_type");
});

test("arrows choose a completion, Enter takes it, and what stands after the cursor stays", async () => {
  await page.type(INPUT, "p < 3");
  page.find(INPUT).setSelectionRange(1, 1);
  await offer(0, "price", "pressure");
  await page.press(INPUT, "ArrowDown");
  await page.press(INPUT, "ArrowDown");
  assert.equal(page.find(INPUT).getAttribute("aria-activedescendant"), page.find("[role=option][aria-selected=true]").id);
  await page.press(INPUT, "Enter");
  assert.equal(page.find(INPUT).value, "pressure < 3");
  assert.equal(page.find(INPUT).selectionStart, 8);
  assert.deepEqual(page.sent("query.enter"), []);
});

test("Enter asks, though completions are offered; Escape closes them; Tab goes on where nothing was begun", async () => {
  await page.type(INPUT, "price ");
  await offer(6, "<", "=");
  const tab = new KeyboardEvent("keydown", { key: "Tab", bubbles: true, cancelable: true });
  page.find(INPUT).dispatchEvent(tab);
  assert.equal(tab.defaultPrevented, false);
  await page.press(INPUT, "Escape");
  assert.equal(page.el.querySelector("[role=listbox]"), null);
  await offer(6, "<", "=");
  await page.press(INPUT, "Enter");
  assert.deepEqual(page.sent("query.enter"), [{ text: "price " }]);
});

test("completions that were asked for earlier are not shown", async () => {
  await page.type(INPUT, "p");
  const number = await offer(0, "price");
  await page.press(INPUT, "Escape");
  await page.type(INPUT, "pr");
  await pass(60);
  await page.receive({ kind: "completions", number, start: 0, items: [{ text: "stale" }] });
  assert.equal(page.el.querySelector("[role=listbox]"), null);
});

test("Escape closes what is on its way, too", async () => {
  await page.type(INPUT, "p");
  await pass(60);
  const { number } = page.sent("query.complete").at(-1);
  await page.press(INPUT, "Escape");
  await page.receive({ kind: "completions", number, start: 0, items: [{ text: "price" }] });
  assert.equal(page.el.querySelector("[role=listbox]"), null);
});

test("what is wrong with the filter is said as text", async () => {
  await page.set("query", { text: "x <", error: "<b>After < a value is missing.</b>" });
  assert.equal(page.find(INPUT).getAttribute("aria-invalid"), "true");
  assert.equal(page.find(`#${page.find(INPUT).getAttribute("aria-describedby")}`).textContent, "<b>After < a value is missing.</b>");
});

test("a chip is taken out by its own action, an idea is asked by a click", async () => {
  await page.click(".icestats-chip button");
  assert.deepEqual(page.sent("query.drop"), [{ field: "event_time" }]);
  await page.set("query", { text: "", chips: [], ideas: ["price < 3.2"] });
  await page.click(".icestats-idea");
  assert.deepEqual(page.sent("query.enter"), [{ text: "price < 3.2" }]);
});

test("a kernel that is busy, and one that has ended, are said", async () => {
  await page.click(".icestats-chip button");
  await pass(8_000);
  assert.match(page.find(".icestats-said").textContent, /busy/);
  await page.hear();
  assert.doesNotMatch(page.find(".icestats-said").textContent, /busy/);
  page.model.send = () => {
    throw new Error("the comm is closed");
  };
  await page.click(".icestats-chip button");
  assert.match(page.find(".icestats-said").textContent, /has ended/);
});

test("what a date means is said below the line, and one click writes the whole day", async () => {
  const text = "at <= '2026-09-09'";
  await page.set("query", { text, tip: { text: "ends at midnight", filter: "at < '2026-09-10'" } });
  assert.equal(page.find(".icestats-advice > span").textContent, "ends at midnight");
  await page.click(".icestats-advice button");
  assert.deepEqual(page.sent("query.enter"), [{ text: "at < '2026-09-10'" }]);
  assert.equal(page.el.querySelector(".icestats-advice"), null, "it is about what stands in the line");
});
