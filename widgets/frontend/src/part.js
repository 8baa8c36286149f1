/** @import { PartContent, PartPlace } from "./protocol.d.ts" */
import { html } from "htm/preact";

import { Blocks } from "./blocks.js";
import { CopyButton, Tool } from "./buttons.js";
import { PartContext, useLink, useOwned } from "./hooks.js";
import { unbroken } from "./unbroken.js";

/**
 * What of a part is to be seen: its blocks, a line, or nothing.
 * @param {PartContent | undefined} content
 * @returns {"blocks" | "line" | ""}
 */
export function partForm(content) {
  if (!content?.blocks) return "";
  if (content.blocks.length || content.is_busy) return "blocks";
  return content.caption ? "line" : "";
}

/**
 * @param {{ name: string, place: PartPlace, content: PartContent, isCollapsed: boolean, isWide: boolean, fills: boolean, isBeside: boolean }} props
 */
export function Part({ name, place, content, isCollapsed, isWide, fills, isBeside }) {
  const link = useLink();
  const [collapsed, setCollapsed] = useOwned(isCollapsed);
  const [wide, setWide] = useOwned(isWide);
  const form = partForm(content);
  const isShown = form === "blocks" && !collapsed;
  const { title } = place;
  const { code = "" } = content;
  const collapse = () => setCollapsed(!collapsed, link.act("page.collapse", { part: name, collapsed: !collapsed }));
  const widen = () => setWide(!wide, link.act("page.widen", { part: name, wide: !wide }));
  const headId = `icestats-${link.view}-${name}`;
  if (form === "line") {
    return html`<section class="icestats-part is-line" data-part=${name}>
      <h3>${title}</h3><span class="icestats-quiet">${content.caption}</span>
    </section>`;
  }
  const look = `icestats-part${fills ? " is-wide" : ""}${isBeside ? " is-beside" : ""}${isShown ? "" : " is-collapsed"}`;
  return html`<section class=${look} data-part=${name} aria-labelledby=${headId}
    aria-busy=${String(Boolean(content.is_busy))}>
    <header>
      <h3 id=${headId}><button type="button" class="icestats-fold" aria-expanded=${String(!collapsed)} onClick=${collapse}>
        <span class="icestats-twisty" aria-hidden="true">${collapsed ? "▸" : "▾"}</span>${title}</button></h3>
      <p class="icestats-caption" title=${content.caption}>${unbroken(content.caption ?? "")}</p>
      <span class="icestats-tools">
        ${code && html`<${CopyButton} label=${`Copy as Python: ${code}`} text=${() => code}>Code<//>`}
        <${Tool} label=${`${title}: ${wide ? "half" : "the whole"} width`} isOn=${wide} name="icestats-widen" press=${widen}>Wide<//>
      </span>
    </header>
    <i class=${`icestats-waiting${content.is_busy ? " is-on" : ""}`}></i>
    ${isShown && html`<${PartContext.Provider} value=${name}>
      <div class="icestats-blocks"><${Blocks} blocks=${content.blocks} /></div>
    <//>`}
  </section>`;
}
