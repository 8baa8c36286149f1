// What stands above and below the rows of a grid.
/** @import { SeenColumn } from "./grid_columns.js" */
/** @import { GridBlock } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { CopyButton, Tool } from "./buttons.js";
import { Checks } from "./form.js";
import { useDebounced, useOwned } from "./hooks.js";
import { Popover } from "./popover.js";

const SEARCH_MS = 200;

/** @typedef {(verb: string, value: unknown) => number} GridAct */

/**
 * The search; with cards, which have no heads, the order too.
 * @param {{ block: GridBlock, act: GridAct, seen: SeenColumn[], isCard: boolean, sortBy: (name: string) => void }} props
 */
export function GridBar({ block, act, seen, isCard, sortBy }) {
  if (!block.search && !isCard) return null;
  const sorted = block.sort?.column ?? "";
  const names = seen.map(({ column }) => column).filter((column) => column.sortable !== false);
  return html`<div class="icestats-grid-bar">
    ${block.search && html`<${Search} search=${block.search} label=${block.label} act=${act} />`}
    ${isCard &&
    html`<select class="icestats-input" aria-label=${`Sort ${block.label}`}
      onChange=${(/** @type {any} */ event) => sortBy(event.target.value)}>
      ${!sorted && html`<option value="" selected>Sort by …</option>`}
      ${names.map(({ name, title }) => html`<option value=${name} selected=${name === sorted}>Sort by ${title}</option>`)}
    </select>`}
  </div>`;
}

/** @param {{ search: { placeholder: string, text: string }, label: string, act: GridAct }} props */
function Search({ search, label, act }) {
  const [text, setText] = useOwned(search.text);
  const { later } = useDebounced((/** @type {string} */ typed) => setText(typed, act("search", { text: typed })), SEARCH_MS);
  const onInput = (/** @type {any} */ event) => {
    setText(event.target.value, Infinity);
    later(event.target.value);
  };
  return html`<input type="search" class="icestats-input" placeholder=${search.placeholder} aria-label=${`Search ${label}`}
    value=${text} onInput=${onInput} onKeyDown=${(/** @type {Event} */ event) => event.stopPropagation()} />`;
}

/**
 * How many rows there are, and what can be done with them.
 * @param {{
 *   block: GridBlock, rowCount: number, act: GridAct, copyText: () => string,
 *   columns: { shown: string[], choose: (names: string[]) => void },
 * }} props
 */
export function GridFoot({ block, rowCount, act, copyText, columns }) {
  const [anchor, setAnchor] = useState(/** @type {DOMRect | null} */ (null));
  const count = rowCount ? `${rowCount.toLocaleString("en")} ${rowCount === 1 ? "row" : "rows"}` : "";
  const open = (/** @type {any} */ event) => setAnchor(event.currentTarget.getBoundingClientRect());
  const options = block.columns.map(({ name, title, about }) => ({ value: name, text: title, about }));
  const choose = (/** @type {string[]} */ names) => names.length && columns.choose(names);
  return html`<div class="icestats-grid-foot">
    <span class="icestats-note" role="status">${block.note || count}</span>
    <span class="icestats-tools">
      <${Tool} label="Choose columns" press=${open}>Columns<//>
      <${CopyButton} label="Copy rows, to paste into a spreadsheet" text=${copyText}>Copy<//>
      <${Tool} label="Save all rows as CSV" press=${() => act("csv", {})}>CSV<//>
    </span>
    ${anchor &&
    html`<${Popover} anchor=${anchor} label="Columns" close=${() => setAnchor(null)}>
      <div class="icestats-checks"><${Checks} options=${options} chosen=${columns.shown} change=${choose} /></div>
    <//>`}
  </div>`;
}

/** @typedef {{ anchor: DOMRect, label: string, texts: [string, string][] }} Opened   titles and texts of cells */

/**
 * Cells in full.
 * @param {{ opened: Opened, close: () => void }} props
 */
export function OpenedCells({ opened: { anchor, label, texts }, close }) {
  const copied = texts.map(([title, text]) => (texts.length > 1 ? `${title}\t${text}` : text)).join("\n");
  return html`<${Popover} anchor=${anchor} label=${label} close=${close}>
    ${texts.map(([title, text]) => html`<p key=${title}><small>${title}</small>${text}</p>`)}
    <${CopyButton} label="Copy the text" text=${() => copied}>Copy<//>
  <//>`;
}
