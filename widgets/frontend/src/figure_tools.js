// The line below a figure: its range, scale, zoom, and files.
/** @import { FigureAct } from "./figure.js" */
/** @import { FigureBlock } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { useRef } from "preact/hooks";

import { Tool } from "./buttons.js";
import { savePng, saveSvg } from "./figure_file.js";
import { useOwned } from "./hooks.js";

/**
 * @param {{
 *   block: FigureBlock, act: FigureAct, canvas: { current: HTMLElement | null },
 *   isZooming: boolean, setZooming: (isZooming: boolean) => void,
 * }} props
 */
export function FigureTools({ block, act, canvas, isZooming, setZooming }) {
  const { svg, name = block.id } = block;
  const save = (/** @type {typeof saveSvg | typeof savePng} */ saveAs) => () => canvas.current && void saveAs(svg, canvas.current, name);
  return html`<figcaption>
    <span class="icestats-tools">
      ${block.typed && html`<${TypedRange} typed=${block.typed} label=${block.label} act=${act} />`}
      ${typeof block.log === "boolean" && html`<${LogSwitch} log=${block.log} act=${act} />`}
      ${block.zoom &&
      html`<${Tool} label="Zoom: then drag over the figure" isOn=${isZooming} press=${() => setZooming(!isZooming)}>Zoom<//>`}
      ${block.zoomed && html`<${Tool} label="Show everything again" press=${() => act("reset")}>Reset<//>`}
      <${Tool} label="Save as PNG" press=${save(savePng)}>PNG<//>
      <${Tool} label="Save as SVG" press=${save(saveSvg)}>SVG<//>
    </span>
  </figcaption>`;
}

/** @param {{ typed: { lower: string, upper: string }, label: string, act: FigureAct }} props */
function TypedRange({ typed, label, act }) {
  const [range, setRange] = useOwned(typed);
  const isTyped = useRef(false);
  const send = () => {
    isTyped.current = false;
    setRange(range, act("range", range));
  };
  const type = (/** @type {object} */ change) => {
    isTyped.current = true;
    setRange({ ...range, ...change }, Infinity);
  };
  // What a person has come to is not written anew under their hands.
  const enter = () => isTyped.current || setRange(range, Infinity);
  const leave = (/** @type {any} */ event) => {
    if (event.currentTarget.contains(event.relatedTarget)) return;
    if (isTyped.current) send();
    else setRange(range, 0);
  };
  const field = (/** @type {"lower" | "upper"} */ end, /** @type {string} */ word) =>
    html`<input class="icestats-input" size="9" aria-label=${`${word}: ${label}`} placeholder=${word.toLowerCase()} value=${range[end]}
      onInput=${(/** @type {any} */ event) => type({ [end]: event.target.value })} />`;
  return html`<form class="icestats-range" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), send())} onFocusIn=${enter} onFocusOut=${leave}
    onKeyDown=${(/** @type {Event} */ event) => event.stopPropagation()}>
    ${field("lower", "From")} – ${field("upper", "To")}
    <button type="submit" class="icestats-tool" title="Show this range">Go</button>
  </form>`;
}

/** @param {{ log: boolean, act: FigureAct }} props */
function LogSwitch({ log, act }) {
  const [isOn, setOn] = useOwned(log);
  const change = () => setOn(!isOn, act("log", { on: !isOn }));
  return html`<label class="icestats-check"><input type="checkbox" checked=${isOn} onChange=${change} /> log counts</label>`;
}
