// The page: a compact head, the filter that stays in sight, tabs, and the parts of the open one.
/** @import { Arrangement, Head, PartContent, PartPlace, Tab } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Code, Facts } from "./blocks.js";
import { FilterBar } from "./filter_bar.js";
import { Form } from "./form.js";
import { useDebounced, useLink, useMessages, useOwned, useRedraw, useTrait, useTraits, useWidth, WidthContext } from "./hooks.js";
import { Part, partForm } from "./part.js";
import { save } from "./saving.js";

const TWO_COLUMNS_PIXELS = 1000;
const WIDTH_MS = 150;
const CHANGED_PIXELS = 8;

/**
 * Which parts take the whole width: wide ones, and those that have no neighbour.
 * @param {{ name: string, isWide: boolean }[]} parts
 * @param {boolean} hasColumns
 */
export function fillingParts(parts, hasColumns) {
  const filling = new Set();
  for (let place = 0; place < parts.length; place += 1) {
    const [one, next] = [parts[place], parts[place + 1]];
    if (hasColumns && !one.isWide && next && !next.isWide) place += 1;
    else filling.add(one.name);
  }
  return filling;
}

function PageHead() {
  const head = /** @type {Head} */ (useTrait("head") ?? { title: "" });
  return html`<header class="icestats-head"><h2 title=${head.about}>${head.title}</h2>
    ${head.subtitle && html`<span class=${head.is_bad ? "is-bad" : "icestats-quiet"}>${head.subtitle}</span>`}
    <span class="icestats-busy" role="status">${head.busy}</span>
    <${Form} fields=${head.buttons ?? []} />
    ${head.facts && html`<${Facts} facts=${head.facts} />`}</header>`;
}

/** @param {{ tabs: Tab[], open: string, choose: (name: string) => void, id: string }} props */
function Tabs({ tabs, open, choose, id }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const at = tabs.findIndex((tab) => tab.name === open);
    const goal = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (goal === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const place = (goal + tabs.length) % tabs.length;
    choose(tabs[place].name);
    /** @type {HTMLElement | undefined} */ (list.current?.children[place])?.focus();
  };
  return html`<div ref=${list} role="tablist" class="icestats-tabs" aria-label="Parts of the explorer" onKeyDown=${onKey}>
    ${tabs.map((tab) => html`<button type="button" key=${tab.name} role="tab" id=${`${id}-tab-${tab.name}`} aria-selected=${String(tab.name === open)}
      aria-controls=${`${id}-panel`} tabindex=${tab.name === open ? 0 : -1} onClick=${() => choose(tab.name)}>${tab.title}</button>`)}</div>`;
}

export function Shell() {
  const link = useLink();
  const tabs = /** @type {Tab[]} */ (useTrait("tabs") ?? []);
  const [open, setOpen] = useOwned(/** @type {string} */ (useTrait("tab")));
  const places = /** @type {Record<string, PartPlace>} */ (useTrait("index") ?? {});
  const arrangement = /** @type {Arrangement} */ (useTrait("arrangement") ?? { collapsed: [], wide: [] });
  const traitOf = useTraits(Object.keys(places).map((name) => `part_${name}`));
  const contentOf = (/** @type {string} */ name) => /** @type {PartContent | undefined} */ (traitOf(`part_${name}`));
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  const width = useWidth(root, 1200);
  const [said, setSaid] = useState(/** @type {{ kind: string, text: string } | null} */ (null));
  const id = `icestats-${link.view}`;

  const shown = Object.keys(places)
    .filter((name) => places[name].tab === open && partForm(contentOf(name)) !== "")
    .map((name) => ({ name, isBeside: places[name].is_beside === true, isWide: arrangement.wide.includes(name) || partForm(contentOf(name)) === "line" }));
  const hasColumns = width >= TWO_COLUMNS_PIXELS;
  const filling = fillingParts(shown.filter(({ isBeside }) => !isBeside), hasColumns);
  // What stands on top of its neighbour is beside the part before both, or has no neighbours.
  shown.forEach(({ name, isBeside }, place) => isBeside && place && filling.has(shown[place - 1].name) && filling.add(name));
  const choose = (/** @type {string} */ name) => name !== open && setOpen(name, link.act("page.tab", { name }));

  const panel = useRef(/** @type {HTMLElement | null} */ (null));
  const before = useRef(open);
  useLayoutEffect(() => {
    // Another tab begins below the bar, not above it.
    const { current } = panel;
    const bottom = current?.previousElementSibling?.getBoundingClientRect().bottom ?? 0;
    if (before.current !== open && current && current.getBoundingClientRect().top < bottom) current.scrollIntoView({ block: "start" });
    before.current = open;
  }, [open]);
  // Where a button leads: a part of a tab that may not be drawn yet; figures above it grow, until a person goes on.
  const wanted = useRef("");
  const redraw = useRedraw();
  useEffect(() => {
    const place = shown.some(({ name }) => name === wanted.current) && root.current?.querySelector(`[data-part="${wanted.current}"]`);
    if (place) place.scrollIntoView({ block: "start" });
  });
  const goOn = () => void (wanted.current = "");
  useReportedWidths(root);
  useEffect(() => {
    requestAnimationFrame(() => requestAnimationFrame(() => link.act("page.shown", {})));
  }, []);
  useMessages((message) => {
    if (message.kind === "file") save(message.name, new Blob([message.text], { type: message.type }));
    if (message.kind === "part") {
      wanted.current = message.part;
      redraw();
    }
    if (message.kind === "code" || message.kind === "problem") setSaid({ kind: message.kind, text: message.text });
  });

  return html`<div ref=${root} class="icestats-explorer" onPointerDown=${goOn} onWheel=${goOn} onKeyDown=${goOn}><${WidthContext.Provider} value=${width}>
    <${PageHead} />
    ${said && html`<div class="icestats-reply" role="status">
      ${said.kind === "code" ? html`<${Code} text=${said.text} />` : html`<p class="is-bad">${said.text}</p>`}
      <button type="button" aria-label="Close" onClick=${() => setSaid(null)}>×</button></div>`}
    <div class="icestats-bar-sticky"><${FilterBar} /><${Tabs} tabs=${tabs} open=${open} choose=${choose} id=${id} /></div>
    <div ref=${panel} class=${`icestats-panel${hasColumns ? " has-columns" : ""}`} role="tabpanel" id=${`${id}-panel`}
      aria-labelledby=${`${id}-tab-${open}`}>
      ${shown.map(({ name, isWide, isBeside }) => html`<${Part} key=${name} name=${name} place=${places[name]} content=${contentOf(name)}
        isWide=${isWide} isCollapsed=${arrangement.collapsed.includes(name)} fills=${filling.has(name)} isBeside=${isBeside} />`)}
    </div><//></div>`;
}

/**
 * Tell the kernel how wide figures can be.
 * @param {{ current: HTMLElement | null }} root
 */
function useReportedWidths(root) {
  const link = useLink();
  const told = useRef(/** @type {Record<string, number>} */ ({}));
  const report = () => {
    const { current } = root;
    if (!current?.clientWidth) return;
    /** @type {Record<string, number>} */
    const widths = {};
    for (const figure of current.querySelectorAll("[data-figure]")) {
      if (figure.clientWidth) widths[/** @type {HTMLElement} */ (figure).dataset.figure ?? ""] = figure.clientWidth;
    }
    const isSame = Object.entries(widths).every(([name, pixels]) => Math.abs((told.current[name] ?? 0) - pixels) < CHANGED_PIXELS);
    if (isSame) return;
    told.current = { ...told.current, ...widths };
    link.act("page.width", { figures: widths });
  };
  const { later } = useDebounced(report, WIDTH_MS);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => later());
    observer.observe(/** @type {HTMLElement} */ (root.current));
    report();
    return () => observer.disconnect();
  }, []);
  useEffect(() => later());
}
