/** @import { Column, GridBlock, Row } from "./protocol.d.ts" */
import { useState } from "preact/hooks";

import { useOwned } from "./hooks.js";

const SIGN_PIXELS = 7.3;
const NAME_SIGN_PIXELS = 7.8;
const WRAPPED_SIGN_PIXELS = 7.6;
const MOST_LINES = 8;
const PADDING_PIXELS = 16;
const LEAST_TEXT_PIXELS = 84;
const LEAST_TEXT_SHARE = 2 / 3;

/** @typedef {{ column: Column, place: number }} SeenColumn   a column that is shown, and the place of its cells in a row */

/** @param {string} width */
export const leastPixels = (width) => parseInt(/\d+/.exec(width)?.[0] ?? "60", 10);

/** @param {string[]} widths */
const sumLeast = (widths) => widths.reduce((sum, width) => sum + leastPixels(width), 0);


/**
 * What the longest text of a column needs.
 * @param {SeenColumn} seen
 * @param {Row[]} rows
 * @param {number} signPixels
 */
const neededPixels = ({ place }, rows, signPixels) =>
  Math.ceil(rows.reduce((most, { cells }) => Math.max(most, cells[place]?.t?.length ?? 0), 0) * signPixels) + PADDING_PIXELS;

/** @param {number} pixels */
const spareText = (pixels) => Math.max(0, pixels - Math.max(LEAST_TEXT_PIXELS, LEAST_TEXT_SHARE * pixels));

/**
 * A column's width, but at least as much as its numbers need: they are not cut; nor are names, up to the most that they may have.
 * @param {SeenColumn} seen
 * @param {Row[]} rows
 */
export function fitTexts(seen, rows) {
  const { width, align, name_pixels: mostPixels } = seen.column;
  if (!mostPixels && align !== "end") return width;
  const needed = mostPixels ? Math.min(mostPixels, neededPixels(seen, rows, NAME_SIGN_PIXELS)) : neededPixels(seen, rows, SIGN_PIXELS);
  return needed > leastPixels(width) ? width.replace(/\d+/, String(needed)) : width;
}

/**
 * Widths of columns that are a little too wide together: text gives way, to two thirds, and opens where it is cut; numbers do not, names only as the last.
 * @param {string[]} widths
 * @param {SeenColumn[]} seen
 * @param {number} room
 */
export function squeeze(widths, seen, room) {
  const excess = sumLeast(widths) - room;
  if (excess <= 0) return widths;
  const isName = (/** @type {number} */ place) => Boolean(seen[place].column.name_pixels);
  const spare = widths.map((width, place) => (seen[place].column.align === "end" || isName(place) ? 0 : spareText(leastPixels(width))));
  const ofNames = widths.map((width, place) => (isName(place) ? leastPixels(width) - leastPixels(seen[place].column.width) : 0));
  const [whole, more] = [spare, ofNames].map((pixels) => pixels.reduce((sum, one) => sum + one, 0));
  if (excess > whole + more) return widths;
  const [share, rest] = [Math.min(1, excess / (whole || 1)), Math.max(0, excess - whole) / (more || 1)];
  return widths.map((width, place) => width.replace(/\d+/, String(Math.floor(leastPixels(width) - spare[place] * share - ofNames[place] * rest))));
}

/**
 * The columns that there is room for, with their widths: where all are too wide together, those go that need not be seen at once.
 * @param {SeenColumn[]} seen
 * @param {Row[]} rows
 * @param {number} room
 * @param {boolean} isChosen   by a person: none goes
 */
export function fitColumns(seen, rows, room, isChosen) {
  const fit = (/** @type {SeenColumn[]} */ some) => squeeze(some.map((one) => fitTexts(one, rows)), some, room);
  const [all, fewer] = [fit(seen), seen.filter(({ column }) => !column.roomy)];
  const rest = fit(fewer);
  const cutsNames = seen.some((one, place) => one.column.name_pixels && leastPixels(all[place]) < leastPixels(fitTexts(one, rows)));
  const goes = !isChosen && (sumLeast(all) > room || cutsNames) && sumLeast(rest) <= room;
  return goes ? { seen: fewer, widths: rest } : { seen, widths: all };
}

/**
 * How many lines the longest text of a column that wraps takes; 0: none of them does.
 * @param {SeenColumn[]} seen
 * @param {string[]} widths
 * @param {Row[]} rows
 * @param {number} room
 */
export function countLines(seen, widths, rows, room) {
  const place = seen.findIndex(({ column }) => column.wraps);
  if (place < 0) return 0;
  const shares = widths.map((width) => parseFloat(/([\d.]+)fr/.exec(width)?.[1] ?? "0"));
  const all = shares.reduce((sum, one) => sum + one, 0) || 1;
  const others = sumLeast(widths) - leastPixels(widths[place]);
  const pixels = Math.min(room - others, Math.max(leastPixels(widths[place]), (room * shares[place]) / all));
  const needed = neededPixels(seen[place], rows, WRAPPED_SIGN_PIXELS) - PADDING_PIXELS;
  return Math.max(1, Math.min(MOST_LINES, Math.ceil(needed / Math.max(1, pixels - PADDING_PIXELS))));
}

/**
 * The columns that a person wants to see, as wide as they want them.
 * @param {GridBlock} block
 * @param {(verb: string, value: unknown) => number} act
 * @param {number} room   pixels that the grid has
 */
export function useColumns({ columns, rows }, act, room) {
  const [shown, setShown] = useOwned(columns.filter((column) => !column.hidden).map((column) => column.name));
  const [widths, setWidths] = useState(/** @type {Record<string, number>} */ ({}));
  const [isChosen, setChosen] = useState(false);
  const wanted = columns.map((column, place) => ({ column, place })).filter(({ column }) => shown.includes(column.name));
  const fitted = fitColumns(wanted, rows, room, isChosen);
  const seen = fitted.seen;
  const own = seen.map((one) => (widths[one.column.name] ? `${widths[one.column.name]}px` : fitTexts(one, rows)));
  const template = Object.keys(widths).length ? own : fitted.widths;
  return {
    seen,
    shown: seen.map(({ column }) => column.name),
    template: template.join(" "),
    least: sumLeast(template),
    lines: countLines(seen, template, rows, room),
    choose: (/** @type {string[]} */ names) => (setChosen(true), setShown(names, act("columns", { names }))),
    resize: (/** @type {string} */ name, /** @type {number} */ pixels) => setWidths({ ...widths, [name]: pixels }),
  };
}
