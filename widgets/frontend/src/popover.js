/** @import { ComponentChildren } from "preact" */
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

const GAP = 4;

/**
 * A box over the page, beside what it belongs to. Escape and a press elsewhere close it.
 * @param {{ anchor: DOMRect, label: string, name?: string, close: () => void, children?: ComponentChildren }} props
 */
export function Popover({ anchor, label, name = "", close, children }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const latest = useRef(close);
  latest.current = close;
  useLayoutEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    const root = /** @type {Document | ShadowRoot} */ (element.getRootNode());
    const before = /** @type {HTMLElement | null} */ (root.activeElement);
    element.showPopover?.();
    const { width, height } = element.getBoundingClientRect();
    const isAbove = anchor.bottom + GAP + height > innerHeight && anchor.top > innerHeight - anchor.bottom;
    const top = isAbove ? anchor.top - GAP - height : anchor.bottom + GAP;
    element.style.top = `${Math.max(GAP, top)}px`;
    element.style.left = `${Math.max(GAP, Math.min(anchor.left, innerWidth - width - GAP))}px`;
    /** @type {HTMLElement | null} */ (element.querySelector("input, button, select"))?.focus({ preventScroll: true });
    return () => before?.focus?.({ preventScroll: true });
  }, []);
  useEffect(() => {
    const onPress = (/** @type {Event} */ event) => {
      if (!event.composedPath().includes(/** @type {HTMLElement} */ (box.current))) latest.current();
    };
    document.addEventListener("pointerdown", onPress, true);
    return () => document.removeEventListener("pointerdown", onPress, true);
  }, []);
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation();
    if (event.key === "Escape") latest.current();
  };
  return html`<div ref=${box} popover="manual" class=${`icestats-popover ${name}`} role="dialog" aria-label=${label} tabindex="-1"
    onKeyDown=${onKey}>${children}</div>`;
}
