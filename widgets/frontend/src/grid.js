// A table of any length: the kernel sorts, searches and pages, the page draws the rows that are seen.
/** @import { Opened } from "./grid_bars.js" */
/** @import { SeenColumn } from "./grid_columns.js" */
/** @import { Cell, GridBlock, Row } from "./protocol.d.ts" */
/** @import { Extent } from "./row_window.js" */
import { html } from "htm/preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { GridBar, GridFoot, OpenedCells } from "./grid_bars.js";
import { GridRow } from "./grid_cell.js";
import { useColumns } from "./grid_columns.js";
import { GridHead } from "./grid_head.js";
import { PartContext, useAct, useDebounced, useMessages, useRedraw, useWidth, WidthContext } from "./hooks.js";
import { RowStore } from "./row_store.js";
import { rowTop, scrollTo, seenRows, spacePixels } from "./row_window.js";
import { buildTsv } from "./tsv.js";

const ROW_PIXELS = 26;
const TWO_LINES_PIXELS = 40;
const LINE_PIXELS = 16;
const PADDING_PIXELS = 8;
const CARD_LINE_PIXELS = 20;
const CARD_HEAD_PIXELS = 34;
const LEAST_CARDS = 3;
const NARROW_PIXELS = 900;
const FRAME_PIXELS = 2;
const PATIENCE_MS = 5_000;

/** @param {{ block: GridBlock }} props */
export function Grid({ block }) {
  const part = useContext(PartContext);
  const actOfPart = useAct();
  const act = (/** @type {string} */ verb, /** @type {unknown} */ value) => actOfPart(`${part}.${block.id}.${verb}`, value);
  const store = useRows(block, `${part}.${block.id}`);
  const frame = useRef(/** @type {HTMLElement | null} */ (null));
  const width = useWidth(frame, 800);
  const columns = useColumns(block, act, width - FRAME_PIXELS);
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [opened, setOpened] = useState(/** @type {Opened | null} */ (null));
  const isNarrow = useContext(WidthContext) < NARROW_PIXELS;
  const isCard = isNarrow && columns.least > width && columns.seen.length > 2;
  const extent = findExtent(block, store.row_count, isCard ? columns.seen.length : 0, columns.lines);
  const [first, last] = seenRows(extent, top);
  useWindow(store, first, last, act);

  const { selected = [], is_tree: isTree = false } = block;
  const choose = (/** @type {Row} */ row) =>
    // What is asked for is what is not seen: asking again before the kernel has answered means the same.
    act("choose", { key: row.key, is_selected: selected.includes(row.key), is_open: row.open === true });
  const toggle = (/** @type {Row | undefined} */ row, open = row?.open === false) => {
    if (row?.open !== undefined && row.open !== open) act("open", { key: row.key, open });
  };
  const openCells = (/** @type {Element} */ element, /** @type {Row} */ row, /** @type {string} */ name = "") => {
    const wanted = block.columns.map((column, place) => ({ column, place })).filter(({ column }) => !name || column.name === name);
    const textOf = ({ h, t } = /** @type {Cell} */ ({})) => h || t || "";
    const texts = wanted.map(({ column, place }) => /** @type {[string, string]} */ ([column.title, textOf(row.cells[place])]));
    setOpened({ anchor: element.getBoundingClientRect(), texts, label: name ? texts[0][0] : "The whole row" });
  };
  const scroll = (/** @type {number} */ goal) => {
    if (scroller.current) scroller.current.scrollTop = goal;
    setTop(goal);
  };
  const cursor = useCursor({ frame, store, extent, top, scroll, choose, toggle, openRow: openCells });
  const sortBy = (/** @type {string} */ name) => (act("sort", { column: name }), scroll(0));

  const onClick = (/** @type {MouseEvent} */ event) => {
    const target = /** @type {Element} */ (event.target);
    const cell = /** @type {HTMLElement | null} */ (target.closest("[data-column]"));
    if (!cell) return;
    const row = store.rows.get(cursor.goTo(target));
    const name = String(cell.dataset.column);
    const action = row?.cells[block.columns.findIndex((column) => column.name === name)]?.a;
    if (!row) cursor.chooseLater(rowNumber(cell));
    else if (target.closest(".icestats-more")) openCells(cell, row, name);
    else if (action && target.closest(".icestats-cell-button")) actOfPart(action, { key: row.key, column: name });
    else if (target.closest(".icestats-twisty") && row.open !== undefined) toggle(row);
    else if (!getSelection()?.toString()) choose(row);
  };
  // A row that has the focus is drawn even where it is not seen: it would lose the focus.
  const numbers = Array.from({ length: last - first }, (_, place) => first + place);
  if (cursor.hasFocus && store.row_count && !numbers.includes(cursor.row)) numbers.push(cursor.row);
  const stop = numbers.includes(cursor.row) ? cursor.row : first;
  const isScrolling = store.row_count > extent.fits;
  const [cut, watchCut] = useCut();
  return html`<div ref=${frame} class=${`icestats-grid${isCard ? " is-cards" : extent.row_height >= TWO_LINES_PIXELS && !columns.lines ? " is-tall" : ""}`}
    style=${{ "--columns": isCard ? "none" : columns.template, "--least": isCard ? "0px" : `${columns.least}px`, "--lines": columns.lines }}>
    <${GridBar} block=${block} act=${act} seen=${columns.seen} isCard=${isCard} sortBy=${sortBy} />
    <div ref=${scroller} class="icestats-scroll" role=${isTree ? "treegrid" : "grid"} aria-label=${block.label}
      aria-rowcount=${store.row_count + 1}
      style=${{ overflowY: isScrolling ? "auto" : "hidden", "--body": `${extent.fits * extent.row_height}px` }}
      onScroll=${(/** @type {any} */ event) => setTop(event.currentTarget.scrollTop)}>
      ${!isCard && html`<${GridHead} columns=${columns.seen} sort=${block.sort} press=${sortBy} resize=${columns.resize} />`}
      <div role="rowgroup" class="icestats-tbody" style=${{ height: `${spacePixels(extent)}px` }} ...${cursor.handlers} ...${watchCut}
        onClick=${onClick} onDblClick=${(/** @type {any} */ event) => toggle(store.rows.get(rowNumber(event.target)))}>
        ${numbers.map((number) => html`<${GridRow} key=${number} number=${number} columns=${columns.seen}
          row=${store.rows.get(number) ?? store.before.get(number)} isPending=${!store.rows.has(number)}
          top=${rowTop(extent, number, first, top)} height=${extent.row_height} isTree=${isTree} isCard=${isCard}
          isSelected=${selected.includes(store.rows.get(number)?.key ?? "")} isActive=${number === stop}
          cut=${cut?.row === number ? cut.column : ""} />`)}
      </div>
    </div>
    <${GridFoot} block=${block} rowCount=${store.row_count} act=${act} columns=${columns}
      copyText=${() => copyText(store, selected, columns.seen)} />
    ${opened && html`<${OpenedCells} opened=${opened} close=${() => setOpened(null)} />`}
  </div>`;
}

/**
 * The rows that have come, with the block or after it.
 * @param {GridBlock} block
 * @param {string} name
 */
function useRows(block, name) {
  const redraw = useRedraw();
  const store = useRef(/** @type {RowStore | null} */ (null));
  const taken = useRef(/** @type {GridBlock | null} */ (null));
  store.current ??= new RowStore();
  const rows = store.current;
  if (taken.current !== block) rows.take(block);
  taken.current = block;
  useMessages((message) => {
    if (message.kind === "rows" && message.grid === name && rows.take(message)) redraw();
  });
  return rows;
}

/**
 * Ask for what is seen and not here; again, when an answer was lost.
 * @param {RowStore} store
 * @param {number} first
 * @param {number} last
 * @param {(verb: string, value: unknown) => number} act
 */
function useWindow(store, first, last, act) {
  const redraw = useRedraw();
  const retry = useDebounced(() => (store.forget(), redraw()), PATIENCE_MS);
  useEffect(() => {
    const wanted = store.row_count ? store.missing(first, last) : null;
    if (!wanted) return;
    act("window", wanted);
    retry.later();
  });
}

/**
 * How many rows there are, how high they are, and how many are seen.
 * @param {GridBlock} block
 * @param {number} rowCount
 * @param {number} cardColumns columns of a card; 0: rows are no cards
 * @param {number} lines of a text that wraps; 0: none does
 * @returns {Extent}
 */
function findExtent({ row_height = ROW_PIXELS, most_rows = 14, rows }, rowCount, cardColumns, lines) {
  const isTwo = rows.some((row) => row.cells.some((cell) => cell.s));
  const cardPixels = CARD_HEAD_PIXELS + Math.ceil((cardColumns - 1) / 2) * CARD_LINE_PIXELS;
  const height = cardColumns ? cardPixels : Math.max(row_height, isTwo ? TWO_LINES_PIXELS : 0, lines * LINE_PIXELS + PADDING_PIXELS);
  const isHigh = cardColumns || lines > 1;
  const most = isHigh ? Math.max(LEAST_CARDS, Math.floor((most_rows * ROW_PIXELS) / height)) : most_rows;
  return { row_count: rowCount, row_height: height, fits: Math.max(1, Math.min(most, rowCount)) };
}

/**
 * The row that keys act on.
 * @param {{
 *   frame: { current: HTMLElement | null }, store: RowStore, extent: Extent, top: number, scroll: (top: number) => void,
 *   choose: (row: Row) => void, toggle: (row: Row | undefined, open: boolean) => void, openRow: (element: Element, row: Row) => void,
 * }} grid
 */
function useCursor({ frame, store, extent, top, scroll, choose, toggle, openRow }) {
  const [active, setActive] = useState(0);
  const [hasFocus, setHasFocus] = useState(false);
  const focusNext = useRef(-1);
  // A row that was chosen before it was there, and what was seen in its place.
  const awaited = useRef(/** @type {{ row: number, seen: Row | undefined } | null} */ (null));
  const chooseLater = (/** @type {number} */ number) => void (awaited.current = { row: number, seen: store.before.get(number) });
  const row = Math.max(0, Math.min(active, extent.row_count - 1));
  const move = (/** @type {number} */ wanted) => {
    const next = Math.max(0, Math.min(extent.row_count - 1, wanted));
    const goal = scrollTo(extent, next, top);
    if (goal !== null) scroll(goal);
    setActive(next);
    focusNext.current = next;
  };
  const chooseHere = () => {
    const here = store.rows.get(row);
    if (here) choose(here);
    else chooseLater(row);
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const line = /** @type {Element} */ (event.target);
    if (line.getAttribute("role") !== "row" || event.ctrlKey || event.metaKey || event.altKey) return;
    const here = store.rows.get(row);
    const keys = /** @type {Record<string, () => void>} */ ({
      ArrowDown: () => move(row + 1),
      ArrowUp: () => move(row - 1),
      PageDown: () => move(row + extent.fits - 1),
      PageUp: () => move(row - extent.fits + 1),
      Home: () => move(0),
      End: () => move(extent.row_count - 1),
      Enter: chooseHere,
      " ": chooseHere,
      ArrowRight: () => toggle(here, true),
      ArrowLeft: () => toggle(here, false),
      F2: () => here && openRow(line, here),
    });
    if (!(event.key in keys)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  useLayoutEffect(() => {
    const focused = frame.current?.querySelector(`[data-row="${focusNext.current}"]`);
    if (focused) /** @type {HTMLElement} */ (focused).focus({ preventScroll: true });
    focusNext.current = -1;
    const here = store.rows.get(row);
    const isAwaited = awaited.current?.row === row;
    if (isAwaited && !here) return;
    if (isAwaited && here && isSame(awaited.current?.seen ?? here, here)) choose(here);
    awaited.current = null;
  });
  const goTo = (/** @type {Element} */ target) => {
    setActive(rowNumber(target));
    return rowNumber(target);
  };
  const handlers = {
    onKeyDown,
    onFocusIn: (/** @type {any} */ event) => (setHasFocus(true), goTo(event.target)),
    onFocusOut: () => setHasFocus(false),
  };
  return { row, hasFocus, goTo, handlers, chooseLater };
}

/** The cell under the pointer, if its text is cut short. */
function useCut() {
  const [cut, setCut] = useState(/** @type {{ row: number, column: string } | null} */ (null));
  const onPointerOver = (/** @type {PointerEvent} */ event) => {
    const cell = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-column]"));
    const texts = [...(cell?.querySelectorAll(".icestats-cut, small") ?? [])];
    const isCut = cell !== null && texts.some((text) => text.scrollWidth > text.clientWidth + 1 || text.scrollHeight > text.clientHeight + 2);
    const found = isCut ? { row: rowNumber(cell), column: String(cell.dataset.column) } : null;
    if (found?.row !== cut?.row || found?.column !== cut?.column) setCut(found);
  };
  return /** @type {const} */ ([cut, { onPointerOver, onPointerLeave: () => setCut(null) }]);
}

/**
 * The selected rows, or all that are here.
 * @param {RowStore} store
 * @param {string[]} selected
 * @param {SeenColumn[]} seen
 */
function copyText(store, selected, seen) {
  const here = [...store.rows.entries()].sort(([one], [other]) => one - other).map(([, row]) => row);
  const chosen = here.filter((row) => selected.includes(row.key));
  const texts = (chosen.length ? chosen : here).map((row) => seen.map(({ place }) => row.cells[place]?.t ?? ""));
  return buildTsv([seen.map(({ column }) => column.title), ...texts]);
}

/**
 * Whether two rows are of the same thing: of other rows a key may be that of another one.
 * @param {Row} one
 * @param {Row} other
 */
const isSame = (one, other) => one.key === other.key && one.cells[0]?.t === other.cells[0]?.t;

/** @param {Element} element */
const rowNumber = (element) => Number(/** @type {HTMLElement | null} */ (element.closest("[data-row]"))?.dataset.row ?? 0);
