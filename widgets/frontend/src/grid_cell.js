/** @import { SeenColumn } from "./grid_columns.js" */
/** @import { Cell, Column, Row } from "./protocol.d.ts" */
import { html } from "htm/preact";

import { splitMiddle } from "./middle.js";
import { Picture } from "./picture.js";
import { unbroken } from "./unbroken.js";

/** @param {string | undefined} kind */
const kindClass = (kind = "") => (kind.match(/\w+/g) ?? []).map((word) => ` k-${word}`).join("");

/** @param {{ text: string, isName: boolean, wraps: boolean }} props */
function CellText({ text, isName, wraps }) {
  const [start, end] = isName ? splitMiddle(text) : [text, ""];
  return html`<span class="icestats-cell-text">
    <span class="icestats-cut">${wraps ? unbroken(start) : start}</span>
    ${end && html`<span class="icestats-tail">${end}</span>`}
  </span>`;
}

/**
 * @param {{
 *   cell: Cell, column: Column, isFirst: boolean, isActive: boolean, isCut: boolean,
 *   tree: { depth: number, open?: boolean } | null, isCard: boolean,
 * }} props
 */
export function GridCell({ cell, column, isFirst, isActive, isCut, tree, isCard }) {
  const text = `${cell.t ?? ""}${cell.do ? " +" : ""}`;
  const about = [cell.h ?? text, cell.do].filter(Boolean).join("\n");
  const twisty = { true: "▾", false: "▸", undefined: "" }[String(tree?.open)];
  const name = `icestats-td${cell.s ? " has-two" : ""}${column.align === "end" ? " is-end" : ""}${column.wraps && !isCard ? " is-wrapped" : ""}${kindClass(cell.k)}`;
  const content = html`${cell.svg && html`<${Picture} svg=${cell.svg} label=${cell.h ?? ""} />`}
    ${cell.b !== undefined && html`<i class="icestats-bar" style=${{ width: `${100 * cell.b}%` }}></i>`}
    ${(text || !cell.svg) && html`<${CellText} text=${text} isName=${isFirst || cell.k === "code"} wraps=${column.wraps === true} />`}
    ${cell.s && html`<small>${cell.s}</small>`}`;
  return html`<div role=${isFirst ? "rowheader" : "gridcell"} class=${name} data-column=${column.name} title=${about}
    style=${tree && { paddingInlineStart: `${6 + 16 * tree.depth}px` }}>
    ${tree && html`<span class="icestats-twisty" aria-hidden="true">${twisty}</span>`}
    ${isCard && html`<span class="icestats-card-label">${column.title}</span>`}
    ${cell.a
      ? html`<button type="button" class="icestats-cell-button" tabindex=${isActive ? 0 : -1}>${content}</button>`
      : content}
    ${isCut && html`<button type="button" class="icestats-more" tabindex="-1" aria-label="Show the whole text">⋯</button>`}
  </div>`;
}

/**
 * @param {{
 *   row: Row | undefined, isPending: boolean, number: number, top: number, height: number, columns: SeenColumn[],
 *   isTree: boolean, isSelected: boolean, isActive: boolean, isCard: boolean, cut: string,
 * }} props
 */
export function GridRow({ row, isPending, number, top, height, columns, isTree, isSelected, isActive, isCard, cut }) {
  const name = `icestats-tr${isSelected ? " is-selected" : ""}${isPending ? " is-pending" : ""}`;
  // On a card a label without a value says nothing.
  const isShown = (/** @type {SeenColumn} */ { place }) => !isCard || !row || Boolean(row.cells[place]?.t || row.cells[place]?.svg);
  return html`<div role="row" class=${name} data-row=${number} tabindex=${isActive ? 0 : -1} aria-rowindex=${number + 2}
    aria-selected=${row ? String(isSelected) : undefined} aria-level=${isTree && row ? (row.depth ?? 0) + 1 : undefined}
    aria-expanded=${isTree && row?.open !== undefined ? String(row.open) : undefined}
    style=${{ height: `${height}px`, transform: `translateY(${top}px)` }}>
    ${columns.filter(isShown).map(({ column, place }, at) => html`<${GridCell} key=${column.name} column=${column}
      cell=${row ? (row.cells[place] ?? {}) : { t: "…" }}
      isFirst=${at === 0} isActive=${isActive} isCard=${isCard && at > 0} isCut=${cut === column.name}
      tree=${isTree && at === 0 && row ? { depth: row.depth ?? 0, open: row.open } : null} />`)}
  </div>`;
}
