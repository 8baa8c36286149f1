/** Give the module under test a page of its own, as the browser would: without layout, so every element has the same size. */
import { Window } from "happy-dom";

const window = new Window({ width: 1400, height: 900, url: "http://localhost" });
const PASSED_ON = [
  "document", "ResizeObserver", "MutationObserver", "Element", "HTMLElement", "HTMLInputElement", "Node", "ShadowRoot", "CSS", "Image", "requestAnimationFrame",
  "cancelAnimationFrame", "matchMedia", "getComputedStyle", "getSelection", "innerWidth", "innerHeight", "KeyboardEvent", "MouseEvent", "PointerEvent", "Event",
];
for (const name of PASSED_ON) {
  const value = /** @type {any} */ (window)[name];
  Object.defineProperty(globalThis, name, { value: typeof value === "function" && !/^[A-Z]/.test(name) ? value.bind(window) : value, configurable: true, writable: true });
}
Object.assign(globalThis, { window });

const SIZES = { clientWidth: 1400, offsetWidth: 100, clientHeight: 300, offsetHeight: 26, scrollWidth: 100 };
for (const [name, pixels] of Object.entries(SIZES)) Object.defineProperty(window.HTMLElement.prototype, name, { get: () => pixels, configurable: true });
