import "./page.js";

import { act } from "preact/test-utils";

import explorer from "../src/explorer.js";
import { makeModel } from "./model.js";
import { makeTraits } from "./sample.js";

/**
 * The whole page over a model, and hands for it.
 *
 * @param {Record<string, any>} [traits] what is not as in the sample
 */
export async function showPage(traits = {}) {
  const model = makeModel({ ...makeTraits(1400), ...traits });
  const el = document.body.appendChild(document.createElement("div"));
  const leave = /** @type {() => void} */ (await during(() => explorer.render({ model, el })));
  const find = (/** @type {string} */ selector) => {
    const found = el.querySelector(selector);
    if (!found) throw new Error(`nothing is ${selector}`);
    return /** @type {any} */ (found);
  };
  return {
    el, model, find, leave: () => during(() => (leave(), el.remove())),
    set: (/** @type {string} */ name, /** @type {any} */ value) => during(() => model.set(name, value)),
    receive: (/** @type {any} */ message) => during(() => model.receive(message)),
    /** The kernel has come up to the newest act. */
    hear: () => during(() => model.set("heard", { view: model.sent.at(-1).view, number: model.sent.at(-1).number })),
    press: (/** @type {string} */ selector, /** @type {string} */ key, more = {}) =>
      during(() => find(selector).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }))),
    click: (/** @type {string} */ selector) => during(() => find(selector).click()),
    type: (/** @type {string} */ selector, /** @type {string} */ text) =>
      during(() => {
        const input = find(selector);
        input.focus();
        input.value = text;
        if (input.type === "text") input.setSelectionRange(text.length, text.length);
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }),
    /** What was sent by an action, newest last. */
    sent: (/** @type {string} */ action) => model.sent.filter((one) => one.action === action).map((one) => one.value),
  };
}

/**
 * Do something, and draw all that follows from it.
 * @template T
 * @param {() => T} work
 * @returns {Promise<T>}
 */
export async function during(work) {
  let found = /** @type {any} */ (undefined);
  await act(() => void (found = work()));
  return found;
}
