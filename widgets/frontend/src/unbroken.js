// Literals in sentences, such as '2026-09-09', stay on one line: a browser would break them at their hyphens.
import { html } from "htm/preact";

const LITERALS = /(?<![^\s(=<>,])('[^'\n]{1,40}')/;

/**
 * A sentence with its short literals unbroken.
 * @param {string} text
 */
export function unbroken(text) {
  if (!LITERALS.test(text)) return text;
  return text.split(LITERALS).map((part, place) => (place % 2 ? html`<span class="icestats-unbroken">${part}</span>` : part));
}
