/** @import { ComponentChildren } from "preact" */
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";

import { copy } from "./saving.js";

const SAID_MS = 1_500;

/**
 * A quiet button of a part or a block.
 * @param {{ label: string, press: (event: MouseEvent) => void, isOn?: boolean, name?: string, children?: ComponentChildren }} props
 */
export function Tool({ label, press, isOn, name = "", children }) {
  return html`<button type="button" class=${`icestats-tool ${name}`} title=${label} aria-label=${label} aria-pressed=${isOn} onClick=${press}>
    ${children}</button>`;
}

/** @param {{ text: () => string, label: string, children?: ComponentChildren }} props */
export function CopyButton({ text, label, children }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SAID_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const press = (/** @type {Event} */ event) => {
    event.stopPropagation();
    copy(text()).then(() => setCopied(true));
  };
  return html`<button type="button" class="icestats-tool" title=${label} onClick=${press}>
    <span aria-live="polite">${isCopied ? "Copied" : children}</span></button>`;
}
