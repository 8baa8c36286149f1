/** @import { Field, Option } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { useContext, useState } from "preact/hooks";

import { PartContext, useAct, useDebounced, useLink, useOwned } from "./hooks.js";
import { Popover } from "./popover.js";

const TYPING_MS = 400;
const MOST_SEGMENTS = 5;
const LONGEST_SEGMENTS = 60;

/** @param {{ fields: Field[] }} props */
export function Form({ fields }) {
  return html`<div class="icestats-form">
    ${fields.map((field) => html`<${FormField} key=${field.name} field=${field} />`)}
  </div>`;
}

/** @typedef {{ field: Field, value: any, change: (value: unknown) => void, hold: (value: unknown) => void }} Props */

const KINDS = { choice: Choice, toggle: Toggle, number: Typed, text: Typed, button: Button, progress: Progress, many: Many };

/** @param {{ field: Field }} props */
export function FormField({ field }) {
  const send = useAct();
  const [value, setValue] = useOwned(field.value);
  const Kind = KINDS[field.is];
  if (!Kind) return null;
  const change = (/** @type {unknown} */ changed) => setValue(changed, send(field.action || field.name, changed));
  const hold = (/** @type {unknown} */ typed) => setValue(typed, Infinity);
  return html`<${Kind} field=${field} value=${value} change=${change} hold=${hold} />`;
}

/** @param {{ text: string }} props */
const Label = ({ text }) => (text ? html`<span class="icestats-label">${text}</span>` : null);

/** @param {Props} props */
function Choice(props) {
  const { options = [] } = props.field;
  const length = options.reduce((sum, { text }) => sum + text.length, 0);
  return options.length <= MOST_SEGMENTS && length <= LONGEST_SEGMENTS ? Segments(props) : Select(props);
}

/** @param {Props} props */
function Select({ field: { options = [], label, about }, value, change }) {
  return html`<label class="icestats-field" title=${about}>
    <${Label} text=${label} />
    <select class="icestats-input" onChange=${(/** @type {any} */ event) => change(event.target.value)}>
      ${options.map((option) => html`<option value=${option.value} selected=${option.value === value}>${option.text}</option>`)}
    </select>
  </label>`;
}

/** @param {Props} props */
function Segments({ field: { options = [], label, about, name }, value, change }) {
  const group = `icestats-${useLink().view}-${useContext(PartContext)}-${name}`;
  return html`<div class="icestats-field" role="radiogroup" aria-label=${label} title=${about}>
    <${Label} text=${label} />
    <span class="icestats-segments">
      ${options.map((option) => {
        const isOn = option.value === value;
        return html`<label key=${option.value} class=${isOn ? "is-on" : ""}>
          <input type="radio" name=${group} value=${option.value} checked=${isOn} onChange=${() => change(option.value)} />
          ${option.text}
        </label>`;
      })}
    </span>
  </div>`;
}

/** @param {Props} props */
function Toggle({ field: { label, about }, value, change }) {
  return html`<label class="icestats-check" title=${about}>
    <input type="checkbox" checked=${Boolean(value)} onChange=${() => change(!value)} />
    ${label}
  </label>`;
}

/** @param {Props} props */
function Typed({ field, value, change, hold }) {
  const parse = (/** @type {string} */ text) => {
    if (field.is === "text") return text;
    return text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text);
  };
  const { later, stop } = useDebounced((/** @type {string} */ text) => change(parse(text)), TYPING_MS);
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation();
    if (event.key !== "Enter") return;
    stop();
    change(parse(/** @type {HTMLInputElement} */ (event.target).value));
  };
  const onInput = (/** @type {any} */ event) => {
    hold(event.target.value);
    later(event.target.value);
  };
  return html`<label class="icestats-field" title=${field.about}>
    <${Label} text=${field.label} />
    <input class="icestats-input" type=${field.is} value=${value ?? ""} min=${field.least} max=${field.most}
      onKeyDown=${onKey} onInput=${onInput} />
  </label>`;
}

/** @param {{ field: Field }} props */
function Button({ field }) {
  const send = useAct();
  const press = () => send(field.action || field.name, field.value ?? {});
  return html`<button type="button" class=${`icestats-button is-${field.tone || "plain"}`} disabled=${field.disabled}
    title=${field.about} onClick=${press}>${field.label}</button>`;
}

/** @param {Props} props */
function Progress({ field: { value, most = 1, label } }) {
  return html`<label class="icestats-field">
    <progress value=${value ?? undefined} max=${most} aria-label=${label}></progress>
    <span>${label}</span>
  </label>`;
}

/** @param {{ options: Option[], chosen: string[], change: (chosen: string[]) => void }} props */
export function Checks({ options, chosen, change }) {
  const toggle = (/** @type {string} */ one) =>
    change(options.map(({ value }) => value).filter((other) => (other === one) !== chosen.includes(other)));
  return options.map(({ value, text, about }) => html`<label key=${value} title=${about}>
    <input type="checkbox" checked=${chosen.includes(value)} onChange=${() => toggle(value)} /> ${text}</label>`);
}

/** @param {Props} props */
function Many({ field: { options = [], label }, value, change }) {
  const [anchor, setAnchor] = useState(/** @type {DOMRect | null} */ (null));
  const chosen = /** @type {string[]} */ (value ?? []);
  const all = options.map((option) => option.value);
  const open = (/** @type {any} */ event) => setAnchor(event.currentTarget.getBoundingClientRect());
  return html`<div class="icestats-field">
    <${Label} text=${label} />
    <button type="button" class="icestats-button is-plain" aria-haspopup="dialog" onClick=${open}>
      ${chosen.length === all.length ? "all" : `${chosen.length} of ${all.length}`} ▾
    </button>
    ${anchor &&
    html`<${Popover} anchor=${anchor} label=${label} close=${() => setAnchor(null)}>
      <div class="icestats-checks">
        <span>
          <button type="button" class="icestats-tool" onClick=${() => change(all)}>All</button>
          <button type="button" class="icestats-tool" onClick=${() => change([])}>None</button>
        </span>
        <${Checks} options=${options} chosen=${chosen} change=${change} />
      </div>
    <//>`}
  </div>`;
}
