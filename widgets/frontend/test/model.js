/**
 * A model as anywidget's host gives it, and what was sent through it.
 *
 * @param {Record<string, any>} traits
 */
export function makeModel(traits) {
  const values = { ...traits };
  /** @type {Map<string, Set<Function>>} */
  const listeners = new Map();
  const of = (/** @type {string} */ event) => listeners.get(event) ?? new Set();
  const model = {
    /** @type {any[]} what the page has sent */
    sent: [],
    get: (/** @type {string} */ name) => values[name],
    set: (/** @type {string} */ name, /** @type {any} */ value) => {
      values[name] = value;
      of(`change:${name}`).forEach((listener) => listener());
    },
    save_changes: () => {},
    send: (/** @type {any} */ content) => void model.sent.push(content),
    on: (/** @type {string} */ event, /** @type {Function} */ listener) =>
      void listeners.set(event, of(event).add(listener)),
    off: (/** @type {string} */ event, /** @type {Function} */ listener) => void of(event).delete(listener),
    /** Hand a message of Python's to the page. */
    receive: (/** @type {any} */ content) => of("msg:custom").forEach((listener) => listener(content, [])),
    widget_manager: /** @type {any} */ (null),
  };
  return /** @type {typeof model & import("@anywidget/types").AnyModel} */ (model);
}
