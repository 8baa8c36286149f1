// A figure that Python has drawn: the page shows tooltips, marks what is dragged, and says what is chosen.
/** @import { Box, Plot, Point } from "./plot_area.js" */
/** @import { FigureBlock } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";

import { FigureTools } from "./figure_tools.js";
import { PartContext, useLink, useOwned } from "./hooks.js";
import { parseSvg } from "./picture.js";
import { findPlot, fractions, nextMark } from "./plot_area.js";

const DRAG_PIXELS = 4;

/** @typedef {(verb: string, value?: unknown) => number} FigureAct */
/** @typedef {{ plot: Plot, start: Point, end: Point, isFlat: boolean, isZoom: boolean }} Drag   points in the units of the svg */
/** @typedef {{ text: string, x: number, y: number }} Tip */

/** @param {{ block: FigureBlock }} props */
export function Figure({ block }) {
  const { marks = "" } = block;
  const link = useLink();
  const part = useContext(PartContext);
  const name = `${part}.${block.id}`;
  const act = (/** @type {string} */ verb, /** @type {unknown} */ value = {}) => link.act(`${name}.${verb}`, value);
  const canvas = useRef(/** @type {HTMLElement | null} */ (null));
  const [tip, setTip] = useState(/** @type {Tip | null} */ (null));
  const [isZooming, setZooming] = useState(false);
  const [sent, setSent] = useOwned(/** @type {Drag | null} */ (null));
  const picture = usePicture(canvas, block.svg);

  const showTip = (/** @type {Element | null} */ mark, /** @type {{ clientX: number, clientY: number }} */ at) => {
    const text = mark?.getAttribute("data-tip");
    if (!text || !canvas.current) return setTip(null);
    const { left, top } = canvas.current.getBoundingClientRect();
    setTip({ text, x: at.clientX - left, y: at.clientY - top });
  };
  const choose = (/** @type {SVGElement} */ mark, /** @type {MouseEvent | KeyboardEvent} */ event) => {
    picture.focused.current = mark.dataset.key ?? "";
    act("choose", { key: mark.dataset.key, add: event.ctrlKey || event.shiftKey || event.metaKey });
  };
  const send = (/** @type {Drag} */ drag) => {
    const { plot, start, end, isFlat, isZoom } = drag;
    setSent(drag, act(isZoom ? "zoom" : "mark", fractions(plot, start, end, isFlat)));
    setZooming(false);
  };
  const pointer = usePointer({ picture, canvas, isMarkable: marks !== "", isFlat: marks !== "xy", isZooming, send, choose, showTip });
  const onKeyDown = useKeys({ picture, marks, send, choose, stop: pointer.stop, clear: () => act("clear") });
  const onFocusIn = (/** @type {FocusEvent} */ event) => {
    const mark = /** @type {Element} */ (event.target);
    if (!mark.matches?.(":focus-visible")) return;
    const { left, right, bottom } = mark.getBoundingClientRect();
    showTip(mark, { clientX: (left + right) / 2, clientY: bottom });
  };
  const dragged = pointer.drag ?? sent;
  return html`<figure class=${`icestats-drawing${isZooming ? " is-zooming" : ""}${marks ? " is-markable" : ""}`} aria-label=${block.label}>
    <div ref=${canvas} class="icestats-canvas" data-figure=${name} role="group" aria-label=${block.label} ...${pointer.handlers}
      onDblClick=${() => block.zoomed && act("reset")}
      onKeyDown=${onKeyDown} onFocusIn=${onFocusIn} onFocusOut=${() => setTip(null)}></div>
    ${dragged && html`<${DragBox} drag=${dragged} scale=${picture.scale()} />`}
    ${tip && html`<${TipBox} tip=${tip} within=${canvas.current?.clientWidth ?? 0} />`}
    <${FigureTools} block=${block} act=${act} canvas=${canvas} isZooming=${isZooming} setZooming=${setZooming} />
  </figure>`;
}

/** @typedef {ReturnType<typeof usePicture>} DrawnPicture */

/**
 * Put the svg into the page, once for each that comes.
 * @param {{ current: HTMLElement | null }} canvas
 * @param {string} svg
 */
function usePicture(canvas, svg) {
  const root = useRef(/** @type {SVGSVGElement | null} */ (null));
  const focused = useRef("");
  const findMarks = () => /** @type {SVGElement[]} */ ([...(root.current?.querySelectorAll("[data-key]") ?? [])]);
  useLayoutEffect(() => {
    const active = /** @type {Document | undefined} */ (canvas.current?.getRootNode())?.activeElement ?? null;
    const hadFocus = canvas.current?.contains(active);
    root.current = parseSvg(svg);
    canvas.current?.replaceChildren(...(root.current ? [root.current] : []));
    if (root.current) takeTitles(root.current);
    const stop = findMarks().find((mark) => mark.dataset.key === focused.current) ?? findMarks()[0];
    stop?.setAttribute("tabindex", "0");
    if (hadFocus) stop?.focus({ preventScroll: true });
  }, [svg]);
  const scale = () => {
    const width = root.current?.viewBox?.baseVal?.width || Number(root.current?.getAttribute("width")) || 1;
    return (root.current?.getBoundingClientRect().width || width) / width;
  };
  /** A point of the page in the units of the svg. */
  const pointAt = (/** @type {number} */ x, /** @type {number} */ y) => {
    const { left = 0, top = 0 } = root.current?.getBoundingClientRect() ?? {};
    return { x: (x - left) / scale(), y: (y - top) / scale() };
  };
  const plots = () =>
    [...(root.current?.querySelectorAll("g.plot") ?? [])].map((group) => {
      const { plot = "", x, y, width, height } = /** @type {SVGElement} */ (group).dataset;
      return { plot, x: Number(x), y: Number(y), width: Number(width), height: Number(height) };
    });
  return { findMarks, focused, plots, pointAt, scale };
}

/**
 * Titles become tooltips that are there at once, and names for a screen reader.
 * @param {SVGSVGElement} root
 */
function takeTitles(root) {
  for (const title of root.querySelectorAll("title")) {
    /** @type {Element} */ (title.parentNode).setAttribute("data-tip", title.textContent ?? "");
    title.remove();
  }
  const marks = root.querySelectorAll("[data-key]");
  // What can be chosen in it is no part of one image.
  if (marks.length) root.setAttribute("role", "group");
  for (const mark of marks) {
    mark.setAttribute("role", "button");
    mark.setAttribute("tabindex", "-1");
    mark.setAttribute("aria-label", mark.getAttribute("data-tip") ?? mark.getAttribute("data-key") ?? "");
  }
}

/**
 * A press chooses, a drag marks or zooms.
 * @param {{
 *   picture: DrawnPicture, canvas: { current: HTMLElement | null }, isMarkable: boolean, isFlat: boolean, isZooming: boolean,
 *   send: (drag: Drag) => void, choose: (mark: SVGElement, event: MouseEvent) => void,
 *   showTip: (mark: Element | null, at: { clientX: number, clientY: number }) => void,
 * }} figure
 */
function usePointer({ picture, canvas, isMarkable, isFlat, isZooming, send, choose, showTip }) {
  const [drag, setDrag] = useState(/** @type {Drag | null} */ (null));
  const pressed = useRef(/** @type {{ mark: SVGElement | null, plot: Plot | undefined, start: Point } | null} */ (null));
  const markOf = (/** @type {Event} */ event) => /** @type {SVGElement | null} */ (/** @type {Element} */ (event.target).closest("[data-key]"));
  const stop = () => {
    const was = drag !== null;
    pressed.current = null;
    setDrag(null);
    return was;
  };
  const onPointerDown = (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    const start = picture.pointAt(event.clientX, event.clientY);
    const plot = isMarkable || isZooming ? findPlot(picture.plots(), start) : undefined;
    pressed.current = { mark: markOf(event), start, plot };
    if (!plot) return;
    event.preventDefault();
    canvas.current?.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (/** @type {PointerEvent} */ event) => {
    const { start, plot } = pressed.current ?? {};
    if (!start || !plot) return showTip(/** @type {Element} */ (event.target).closest("[data-tip]"), event);
    const end = picture.pointAt(event.clientX, event.clientY);
    const isFar = Math.hypot(end.x - start.x, end.y - start.y) * picture.scale() >= DRAG_PIXELS;
    if (drag || isFar) setDrag({ plot, start, end, isFlat, isZoom: isZooming });
    showTip(null, event);
  };
  const onPointerUp = (/** @type {PointerEvent} */ event) => {
    const mark = pressed.current?.mark;
    if (drag) send({ ...drag, end: picture.pointAt(event.clientX, event.clientY) });
    else if (mark) choose(mark, event);
    stop();
  };
  // The click of a screen reader; those of a mouse are presses.
  const onClick = (/** @type {MouseEvent} */ event) => {
    const mark = markOf(event);
    if (event.detail === 0 && mark) choose(mark, event);
  };
  const onPointerLeave = (/** @type {PointerEvent} */ event) => showTip(null, event);
  return { drag, stop, handlers: { onPointerDown, onPointerMove, onPointerUp, onPointerCancel: stop, onPointerLeave, onClick } };
}

/**
 * Arrow keys walk over the marks; with Shift they mark from where one began.
 * @param {{
 *   picture: DrawnPicture, marks: string, send: (drag: Drag) => void, choose: (mark: SVGElement, event: KeyboardEvent) => void,
 *   stop: () => boolean, clear: () => void,
 * }} figure
 */
function useKeys({ picture, marks, send, choose, stop, clear }) {
  const anchor = useRef(-1);
  const walk = (/** @type {SVGElement[]} */ all, /** @type {number} */ at, /** @type {KeyboardEvent} */ event) => {
    const boxes = all.map((mark) => mark.getBoundingClientRect());
    const next = nextMark(boxes, at, event.key);
    all[at].setAttribute("tabindex", "-1");
    all[next].setAttribute("tabindex", "0");
    all[next].focus({ preventScroll: true });
    picture.focused.current = all[next].dataset.key ?? "";
    if (!event.shiftKey) anchor.current = -1;
    else if (anchor.current < 0) anchor.current = at;
    if (event.shiftKey && marks) markBoth(boxes[Math.min(anchor.current, all.length - 1)], boxes[next]);
  };
  const markBoth = (/** @type {Box} */ one, /** @type {Box} */ other) => {
    const start = picture.pointAt(Math.min(one.left, other.left), Math.min(one.top, other.top));
    const end = picture.pointAt(Math.max(one.right, other.right), Math.max(one.bottom, other.bottom));
    const plot = findPlot(picture.plots(), { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 });
    if (plot) send({ plot, start, end, isFlat: marks !== "xy", isZoom: false });
  };
  return (/** @type {KeyboardEvent} */ event) => {
    const all = picture.findMarks();
    const at = all.indexOf(/** @type {SVGElement} */ (event.target));
    if (event.key === "Escape") {
      if (stop()) event.stopPropagation();
      else if (marks && at >= 0) clear();
      return;
    } else if (at >= 0 && (event.key === "Enter" || event.key === " ")) {
      choose(all[at], event);
    } else if (at >= 0 && event.key.startsWith("Arrow")) {
      walk(all, at, event);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
}

/** @param {{ tip: Tip, within: number }} props */
function TipBox({ tip: { text, x, y }, within }) {
  const side = x > within / 2 ? { right: `${within - x + 10}px` } : { left: `${x + 10}px` };
  return html`<div class="icestats-tip" role="status" style=${{ top: `${y + 14}px`, ...side }}>${text}</div>`;
}

/** @param {{ drag: Drag, scale: number }} props */
function DragBox({ drag: { plot, start, end, isFlat, isZoom }, scale }) {
  const { x, y } = fractions(plot, start, end, isFlat);
  const pixels = (/** @type {number} */ from, /** @type {number} */ size) => `${(from + size) * scale}px`;
  const style = {
    left: pixels(plot.x, x[0] * plot.width), width: pixels(0, (x[1] - x[0]) * plot.width),
    top: pixels(plot.y, y[0] * plot.height), height: pixels(0, (y[1] - y[0]) * plot.height),
  };
  return html`<div class=${`icestats-drag${isZoom ? " is-zoom" : ""}`} style=${style}></div>`;
}
