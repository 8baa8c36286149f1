/** @import { SeenColumn } from "./grid_columns.js" */
/** @import { GridBlock } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { useRef, useState } from "preact/hooks";

const LEAST_PIXELS = 40;
const STEP_PIXELS = 16;

/**
 * Heads of columns: press to sort, drag the edge to resize; arrow keys walk, with Alt they resize.
 * @param {{
 *   columns: SeenColumn[], sort: GridBlock["sort"], resize: (name: string, pixels: number) => void, press: (name: string) => void,
 * }} props
 */
export function GridHead({ columns, sort, resize, press }) {
  const line = useRef(/** @type {HTMLElement | null} */ (null));
  const [active, setActive] = useState(0);
  const stop = Math.min(active, columns.length - 1);
  const pixels = (/** @type {Element} */ head) => /** @type {HTMLElement} */ (head).offsetWidth;
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const heads = line.current?.children;
    if (!step || !heads) return;
    event.preventDefault();
    if (event.altKey) return resize(columns[stop].column.name, Math.max(LEAST_PIXELS, pixels(heads[stop]) + step * STEP_PIXELS));
    const next = Math.max(0, Math.min(columns.length - 1, stop + step));
    setActive(next);
    heads[next].querySelector("button")?.focus();
  };
  const onGrip = (/** @type {PointerEvent} */ event, /** @type {string} */ name) => {
    event.preventDefault();
    const grip = /** @type {HTMLElement} */ (event.currentTarget);
    const start = pixels(/** @type {Element} */ (grip.parentElement)) - event.clientX;
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = (move) => resize(name, Math.max(LEAST_PIXELS, start + move.clientX));
    grip.onpointerup = grip.onpointercancel = () => (grip.onpointermove = null);
  };
  return html`<div role="rowgroup" class="icestats-thead"><div role="row" class="icestats-tr-head" ref=${line} onKeyDown=${onKey}>
    ${columns.map(({ column }, place) => {
      const order = sort?.column === column.name ? (sort.descending ? "descending" : "ascending") : "none";
      return html`<div key=${column.name} role="columnheader" class=${`icestats-th${column.align === "end" ? " is-end" : ""}`}
        aria-sort=${column.sortable === false ? undefined : order} title=${column.about || column.title}>
        <button type="button" tabindex=${place === stop ? 0 : -1} aria-disabled=${column.sortable === false ? "true" : undefined}
          onFocus=${() => setActive(place)} onClick=${() => column.sortable !== false && press(column.name)}>${column.title}
          ${order !== "none" && html`<span aria-hidden="true">${order === "descending" ? " ▾" : " ▴"}</span>`}</button>
        <span class="icestats-grip" aria-hidden="true" onPointerDown=${(/** @type {PointerEvent} */ event) => onGrip(event, column.name)}></span>
      </div>`;
    })}</div></div>`;
}
