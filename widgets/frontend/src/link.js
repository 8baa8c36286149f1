// The line to the kernel: acts go out with rising numbers, and the trait `heard` says up to which the kernel has come.
/** @import { Message, Model } from "./protocol.d.ts" */

const BUSY_MS = 8_000;
const WAITING_MS = 300;

/** @typedef {"" | "waiting" | "busy" | "lost"} Mood */

export class Link {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.view = Math.random().toString(36).slice(2, 10);
    this.sent = 0;
    this.heard = 0;
    /** @type {Mood} */
    this.mood = "";
    /** @type {ReturnType<typeof setTimeout>[]} */
    this.timers = [];
    /** @type {Set<() => void>} */
    this.watchers = new Set();
    /** @type {Set<(message: Message) => void>} */
    this.listeners = new Set();
    this.events = /** @type {[string, (...args: any[]) => void][]} */ ([
      ["change:heard", () => this.hear()],
      ["msg:custom", (message) => this.receive(message)],
      ["comm_live_update", () => this.lose()],
    ]);
    for (const [name, hear] of this.events) model.on(name, hear);
  }

  close() {
    this.timers.forEach(clearTimeout);
    for (const [name, hear] of this.events) this.model.off(name, hear);
  }

  /**
   * Report what a person has done.
   * @param {string} action
   * @param {unknown} [value]
   * @returns {number} the act's number
   */
  act(action, value = {}) {
    this.sent += 1;
    try {
      this.model.send({ kind: "act", action, value, view: this.view, number: this.sent });
      this.wait();
    } catch {
      this.lose();
    }
    return this.sent;
  }

  /**
   * Be told when `heard` or the mood has changed.
   * @param {() => void} watch
   */
  watch(watch) {
    this.watchers.add(watch);
    return () => void this.watchers.delete(watch);
  }

  /**
   * Be told of the kernel's messages.
   * @param {(message: Message) => void} listen
   */
  listen(listen) {
    this.listeners.add(listen);
    return () => void this.listeners.delete(listen);
  }

  /** @param {Message} message */
  receive(message) {
    if (this.mood === "lost") this.feel("");
    // Other pages may show the same explorer: what they asked for is theirs.
    if (message.view && message.view !== this.view) return;
    for (const listen of this.listeners) listen(message);
  }

  hear() {
    const { view, number } = this.model.get("heard") ?? {};
    if (view !== this.view) return;
    this.heard = Math.max(this.heard, number);
    this.timers.forEach(clearTimeout);
    this.timers = [];
    this.mood = "";
    if (this.heard < this.sent) this.wait();
    this.tell();
  }

  wait() {
    if (this.timers.length || this.mood === "lost") return;
    this.timers = [
      setTimeout(() => this.feel("waiting"), WAITING_MS),
      setTimeout(() => this.feel("busy"), BUSY_MS),
    ];
  }

  lose() {
    this.timers.forEach(clearTimeout);
    this.feel("lost");
  }

  /** @param {Mood} mood */
  feel(mood) {
    this.mood = mood;
    this.tell();
  }

  tell() {
    for (const watch of this.watchers) watch();
  }
}
