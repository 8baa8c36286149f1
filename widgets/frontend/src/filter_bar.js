// The line that a person asks with: what is typed is checked, planned and completed while they type.
/** @import { Chip, Completion, Query } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { CopyButton } from "./buttons.js";
import { useDebounced, useLink, useMessages, useMood, useOwned, useTrait } from "./hooks.js";
import { unbroken } from "./unbroken.js";

const PAUSE_MS = 60;
const CLEAR = "Clear filter and selection";
const MOODS = {
  "": "",
  waiting: "",
  busy: "The kernel is busy: what you do is kept, and done when it is free.",
  lost: "The kernel has ended. What you see is its last state: run the cell again.",
};

/**
 * Put a completion in the place of what was begun.
 * @param {string} text
 * @param {number} start
 * @param {number} end
 * @param {string} item
 * @returns {[string, number]} the text, and where the cursor stands
 */
export function complete(text, start, end, item) {
  return [text.slice(0, start) + item + text.slice(end), start + item.length];
}

/** @param {{ id: string, items: Completion[], active: number, left: number, choose: (place: number) => void }} props */
function Completions({ id, items, active, left, choose }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView?.({ block: "nearest" }), [active]);
  return html`<ul ref=${list} id=${id} class="icestats-completions" role="listbox" aria-label="Completions" style=${{ left: `${left}px` }}>
    ${items.map((item, place) => html`<li key=${item.text} id=${`${id}-${place}`} role="option" aria-selected=${String(place === active)}
      onPointerDown=${(/** @type {Event} */ event) => (event.preventDefault(), choose(place))}>
      <b>${item.text}</b><span>${item.about}</span></li>`)}</ul>`;
}

export function FilterBar() {
  const link = useLink();
  const query = /** @type {Query} */ (useTrait("query") ?? { text: "" });
  const mood = useMood();
  const [text, setText] = useOwned(query.text);
  const [found, setFound] = useState(/** @type {{ before: string, begun: string, after: string, items: Completion[] } | null} */ (null));
  const [active, setActive] = useState(-1);
  const [left, setLeft] = useState(0);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const mirror = useRef(/** @type {HTMLElement | null} */ (null));
  const cursorWanted = useRef(-1);
  const asked = useRef({ number: Math.floor(Math.random() * 1e9), text: "", cursor: 0 });
  const id = `icestats-${link.view}`;
  // A list stays while what it completes is typed on.
  const fits = found !== null && text.startsWith(found.before) && text.slice(found.before.length).endsWith(found.after);
  const begun = fits ? text.slice(found.before.length, text.length - found.after.length) : "";
  const items = fits ? (begun === found.begun ? found.items : found.items.filter((item) => holds(item.text, begun))) : [];

  const close = () => (setFound(null), setActive(-1));
  const typing = useDebounced((/** @type {string} */ typed) => setText(typed, link.act("query.type", { text: typed })), PAUSE_MS);
  const completing = useDebounced(() => {
    if (!input.current) return;
    asked.current = { number: asked.current.number + 1, text: input.current.value, cursor: cursorOf(input.current) };
    link.act("query.complete", { ...asked.current });
  }, PAUSE_MS);
  const type = (/** @type {string} */ typed) => {
    // Theirs until it has been sent, and the kernel has heard of it.
    setText(typed, Infinity);
    typing.later(typed);
  };
  const enter = (/** @type {string} */ typed) => {
    typing.stop();
    completing.stop();
    close();
    setText(typed, link.act("query.enter", { text: typed }));
  };
  const clear = () => {
    typing.stop();
    completing.stop();
    close();
    setText("", link.act("query.clear"));
    input.current?.focus();
  };
  const accept = (/** @type {number} */ place) => {
    if (!found) return;
    const [completed, cursor] = complete(text, found.before.length, text.length - found.after.length, items[place].text);
    cursorWanted.current = cursor;
    close();
    type(completed);
    input.current?.focus();
    completing.later();
  };
  const escape = () => {
    // What is on its way does not open either.
    completing.stop();
    asked.current = { ...asked.current, number: asked.current.number + 1 };
    close();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation();
    const isBegun = text.slice(found?.before.length ?? text.length, cursorOf(input.current)) !== "";
    const keys = /** @type {Record<string, (() => void) | false>} */ ({
      ArrowDown: () => (items.length ? setActive((active + 1) % items.length) : completing.later()),
      ArrowUp: items.length > 0 && (() => setActive((active <= 0 ? items.length : active) - 1)),
      Enter: () => (active >= 0 && items.length ? accept(active) : enter(text)),
      Tab: items.length > 0 && !event.shiftKey && (active >= 0 || isBegun) && (() => accept(Math.max(0, active))),
      Escape: escape,
      " ": event.ctrlKey && (() => completing.later()),
    });
    const work = keys[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  };

  useMessages((message) => {
    if (message.kind !== "completions" || message.number !== asked.current.number) return;
    const { text: was, cursor } = asked.current;
    const end = message.end ?? cursor;
    const [before, begun, after] = [was.slice(0, message.start), was.slice(message.start, end), was.slice(end)];
    if (!input.current?.value.startsWith(before) || !isFocused(input.current)) return;
    setFound(message.items.length ? { before, begun, after, items: message.items } : null);
    setActive(-1);
    if (!mirror.current) return;
    mirror.current.textContent = before;
    const most = input.current.offsetWidth - 260;
    setLeft(Math.max(0, Math.min(mirror.current.offsetWidth - input.current.scrollLeft, most)));
  });
  useLayoutEffect(() => {
    if (cursorWanted.current >= 0) input.current?.setSelectionRange(cursorWanted.current, cursorWanted.current);
    cursorWanted.current = -1;
  });
  const said = MOODS[mood] || query.error || query.hint || query.summary || "";
  const tone = mood === "lost" || (!MOODS[mood] && query.error) ? "bad" : "plain";
  const is_waiting = mood === "waiting" || mood === "busy" || query.busy;
  const asks = Boolean(text || query.chips?.length);
  const tip = text === query.text ? query.tip : null;
  const ideas = asks ? [] : (query.ideas ?? []);
  return html`<div class="icestats-query" role="search">
    <div class="icestats-query-line">
      <label for=${`${id}-input`}>Filter</label>
      <div class="icestats-query-box">
        <input ref=${input} id=${`${id}-input`} class="icestats-input is-code" type="text" spellcheck="false"
          autocomplete="off" autocapitalize="off"
          role="combobox" aria-autocomplete="list" aria-expanded=${String(items.length > 0)} aria-controls=${`${id}-list`}
          aria-activedescendant=${active >= 0 ? `${id}-list-${active}` : undefined} aria-describedby=${`${id}-said`}
          aria-invalid=${String(Boolean(query.error))} placeholder=${query.ideas?.[0] ?? "a row filter"} value=${text}
          onInput=${(/** @type {any} */ event) => (type(event.target.value), completing.later())} onKeyDown=${onKey} onBlur=${close} />
        <span ref=${mirror} class="icestats-mirror" aria-hidden="true"></span>
        ${items.length > 0 &&
        html`<${Completions} id=${`${id}-list`} items=${items} active=${active} left=${left} choose=${accept} />`}
        ${asks &&
        html`<button type="button" class="icestats-clear" aria-label=${CLEAR} title=${CLEAR} onClick=${clear}>×</button>`}
        <i class=${`icestats-waiting${is_waiting ? " is-on" : ""}`}></i>
      </div>
    </div>
    <div class="icestats-query-below">
      ${query.chips?.map((chip) => html`<${ChipButton} key=${chip.text} chip=${chip} />`)}
      ${ideas.length > 0 && html`<span class="icestats-quiet">Try</span>`}
      ${ideas.map((idea) => html`<button type="button" key=${idea} class="icestats-idea" onClick=${() => enter(idea)}>
        ${idea}</button>`)}
      <span id=${`${id}-said`} class=${`icestats-said is-${tone}`} role="status" title=${said}>${said}</span>
      ${query.code && html`<${CopyButton} label=${`Copy as Python: ${query.code}`} text=${() => query.code ?? ""}>Code<//>`}
    </div>
    ${tip && html`<p class="icestats-advice" role="note"><span>${unbroken(tip.text)}</span>
      <button type="button" class="icestats-idea" onClick=${() => enter(tip.filter)}>Use it</button></p>`}
  </div>`;
}

/** @param {{ chip: Chip }} props */
function ChipButton({ chip }) {
  const link = useLink();
  const drop = () => link.act("query.drop", chip.action);
  return html`<span class="icestats-chip" title=${chip.about}><span>${chip.text}</span>
    <button type="button" aria-label=${`Take out ${chip.text}`} onClick=${drop}>×</button></span>`;
}

/** @param {string} word */
const plain = (word) => word.replace(/["']/g, "").toLowerCase();

/**
 * Whether a completion still goes with what has been typed since the kernel was asked.
 * @param {string} item
 * @param {string} typed
 */
const holds = (item, typed) => plain(item).includes(plain(typed));

/** @param {HTMLInputElement | null} input */
const cursorOf = (input) => input?.selectionStart ?? input?.value.length ?? 0;

/** @param {HTMLElement} element */
const isFocused = (element) => /** @type {Document | ShadowRoot} */ (element.getRootNode()).activeElement === element;
