// What stands in a part. All texts are texts; only a figure's svg is markup.
/** @import { Block, CardBlock, Fact, SideBlock } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { useContext, useEffect, useState } from "preact/hooks";

import { CopyButton } from "./buttons.js";
import { Figure } from "./figure.js";
import { Form, FormField } from "./form.js";
import { Grid } from "./grid.js";
import { PartContext, useAct, useOwned } from "./hooks.js";
import { unbroken } from "./unbroken.js";

/** @param {{ blocks: Block[] }} props */
export function Blocks({ blocks }) {
  const keyOf = (/** @type {Block} */ block, /** @type {number} */ place) => ("id" in block ? block.id : `${block.is}${place}`);
  return html`${blocks.map((block, place) => html`<${OneBlock} key=${keyOf(block, place)} block=${block} />`)}`;
}

/** @param {{ block: Block }} props */
function OneBlock({ block }) {
  switch (block.is) {
    case "text": return html`<${Text} text=${[block.text, block.live].filter(Boolean).join(" ")} tone=${block.tone} />`;
    case "facts": return html`<${Facts} facts=${block.facts} />`;
    case "code": return html`<${Code} text=${block.text} />`;
    case "figure": return html`<${Figure} block=${block} />`;
    case "grid": return html`<${Grid} block=${block} />`;
    case "form": return html`<${Form} fields=${block.fields} />`;
    case "card": return html`<${Card} block=${block} />`;
    case "side": return html`<${Side} block=${block} />`;
    default: return null;
  }
}

/** @param {{ text: string, tone?: string }} props */
function Text({ text, tone = "" }) {
  if (tone === "busy") return html`<${Busy} key=${text} text=${text} />`;
  return html`<p class=${`icestats-text is-${tone || "plain"}`} role=${tone === "bad" ? "alert" : undefined}>${unbroken(text)}</p>`;
}

/** @param {{ facts: Fact[] }} props */
export function Facts({ facts }) {
  // Not a list of definitions: Jupyter lays those out itself.
  return html`<div class="icestats-facts">
    ${facts.map(({ label, value, about }) => html`<div key=${label} title=${about}>
      <span>${label}</span><b>${value}</b>
    </div>`)}
  </div>`;
}

/** What is being done, and for how many seconds once that is long. @param {{ text: string }} props */
function Busy({ text }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((passed) => passed + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return html`<p class="icestats-text is-busy">${text}${seconds >= 3 && html`<span aria-hidden="true"> ${seconds} s</span>`}</p>`;
}

/** @param {{ text: string }} props */
export function Code({ text }) {
  return html`<div class="icestats-code">
    <pre tabindex="0" aria-label="Code">${text}</pre>
    <${CopyButton} label="Copy the code" text=${() => text}>Copy<//>
  </div>`;
}

/** @param {{ block: CardBlock }} props */
function Card({ block }) {
  const part = useContext(PartContext);
  const act = useAct();
  const [isOpen, setOpen] = useOwned(block.is_open);
  const toggle = () => setOpen(!isOpen, act(`${part}.${block.id}.open`, { open: !isOpen }));
  const isShown = isOpen !== false && block.blocks.length > 0;
  const title = isOpen === null || isOpen === undefined
    ? html`<span>${block.title}</span>`
    : html`<button type="button" class="icestats-fold" aria-expanded=${String(isOpen)} onClick=${toggle}>
        <span class="icestats-twisty" aria-hidden="true">${isOpen ? "▾" : "▸"}</span>${block.title}</button>`;
  return html`<section class=${`icestats-card is-${block.tone || "plain"}`} data-card=${block.id}>
    <header>
      <h4>${title}</h4>
      ${block.actions?.map((field) => html`<${FormField} key=${field.name} field=${field} />`)}
    </header>
    ${isShown && html`<div class="icestats-blocks"><${Blocks} blocks=${block.blocks} /></div>`}
  </section>`;
}

/** @param {{ block: SideBlock }} props */
function Side({ block }) {
  const { blocks, shares = [] } = block;
  return html`<div class="icestats-side">
    ${blocks.map((one, place) => html`<div key=${place} class="icestats-blocks" style=${{ flexGrow: shares[place] ?? 1 }}>
      <${Blocks} blocks=${[one]} />
    </div>`)}
  </div>`;
}
