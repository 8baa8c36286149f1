/** @import { Link } from "./link.js" */
/** @import { Message } from "./protocol.d.ts" */
import { createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";

export const LinkContext = createContext(/** @type {Link} */ (/** @type {unknown} */ (null)));
/** The name of the part that a block stands in, and how wide the whole page is. */
export const PartContext = createContext("");
export const WidthContext = createContext(1200);

export const useLink = () => useContext(LinkContext);

export function useRedraw() {
  return /** @type {() => void} */ (useReducer((/** @type {number} */ count) => count + 1, 0)[1]);
}

/**
 * What the kernel says now, by name.
 * @param {string[]} names
 * @returns {(name: string) => any}
 */
export function useTraits(names) {
  const { model } = useLink();
  const redraw = useRedraw();
  useLayoutEffect(() => {
    for (const name of names) model.on(`change:${name}`, redraw);
    return () => names.forEach((name) => model.off(`change:${name}`, redraw));
  }, [model, names.join(" ")]);
  return (name) => model.get(name);
}

/** @param {string} name */
export const useTrait = (name) => useTraits([name])(name);

/** The link, watched: what `heard` and the mood say is drawn again. */
function useWatchedLink() {
  const link = useLink();
  const redraw = useRedraw();
  useEffect(() => link.watch(redraw), [link]);
  return link;
}

/**
 * Acts of a block, and of what stands in it: a name without a dot is one of the part's own.
 * @returns {(action: string, value?: unknown) => number}
 */
export function useAct() {
  const link = useLink();
  const part = useContext(PartContext);
  return (action, value) => link.act(action.includes(".") ? action : `${part}.${action}`, value);
}

/**
 * What the kernel says, until a person changes it: then theirs, until the kernel has heard of it.
 * @template T
 * @param {T} told
 * @returns {[T, (value: T, number: number) => void]}
 */
export function useOwned(told) {
  const link = useWatchedLink();
  const [own, setOwn] = useState(/** @type {{ value: T, number: number } | null} */ (null));
  const isOwn = own !== null && own.number > link.heard;
  return [isOwn ? own.value : told, (value, number) => setOwn({ value, number })];
}

/** @returns {import("./link.js").Mood} */
export const useMood = () => useWatchedLink().mood;

/** @param {(message: Message) => void} listen */
export function useMessages(listen) {
  const link = useLink();
  const latest = useRef(listen);
  latest.current = listen;
  useEffect(() => link.listen((message) => latest.current(message)), [link]);
}

/**
 * Pixels of an element, kept up to date.
 * @param {{ current: HTMLElement | null }} ref
 * @param {number} first
 */
export function useWidth(ref, first) {
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const measure = () => element.clientWidth && setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}

/**
 * Call later, and only once of many calls.
 * @template {unknown[]} A
 * @param {(...args: A) => void} work
 * @param {number} pauseMs
 */
export function useDebounced(work, pauseMs) {
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => () => clearTimeout(timer.current), []);
  const stop = () => clearTimeout(timer.current);
  const later = (/** @type {A} */ ...args) => {
    stop();
    timer.current = setTimeout(() => latest.current(...args), pauseMs);
  };
  return { later, stop };
}
