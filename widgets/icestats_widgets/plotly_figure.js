// Draws a plotly figure. Where its places can be marked, what a person marks is shown at once: the kernel's answer to
// an earlier mark never takes the place of a later one.
const PATIENCE_MS = 10_000;
const CONFIG = { displayModeBar: false, displaylogo: false, typesetMath: false, showTips: false };
const HELD_MS = 100;
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const LINE_PIXELS = 4;
const FRAME = "0 0 0 2px #fff, 0 0 0 4px rgba(0, 0, 0, 0.75)";
const VEIL = "0 0 0 4000px color-mix(in srgb, var(--icestats-back, var(--jp-layout-color1, #fff)) 70%, transparent)";

async function load(model) {
  // A page that is opened again makes its models in any order, and the bundle's code may run after this.
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    let reason = new Error("plotly's code has not arrived");
    try {
      const bundle = await model.widget_manager.get_model(model.get("_bundle_id"));
      const found = globalThis.__icestats_plotly_js?.get(bundle.get("version"));
      if (found) return await found;
    } catch (error) {
      reason = error;
    }
    if (Date.now() > end) throw reason;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function painted() {
  // What else has changed is seen first: drawing takes longer.
  return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))));
}

function make_box(el) {
  const box = document.createElement("div");
  box.style.position = "absolute";
  box.style.pointerEvents = "none";
  el.append(box);
  return box;
}

function make_brushable(model, el, plot) {
  // A mouse drags a rectangle or clicks a place; arrow keys move the mark, with shift they stretch it.
  const area = make_box(el);
  area.style.overflow = "hidden";
  const frame = make_box(area);
  frame.className = "icestats-frame";
  let start = null;
  let dragged = null;
  let sent = { places: [], number: 0 };
  let is_held = false;
  let timer = 0;

  const is_bars = () => model.get("places")[1] === 1;
  const clamp = (value, size) => Math.max(0, Math.min(size - 1, value));
  // Once the kernel has seen the newest mark, its word counts: a part of a calendar, or no place at all.
  const find_mark = () => (sent.number > model.get("mark").number ? sent.places : model.get("mark").places);
  const flush = () => {
    clearTimeout(timer);
    timer = 0;
    if (is_held) model.send({ kind: "brush", ...sent });
    is_held = false;
  };
  // A message each, in order with clicks elsewhere; of a key that is held down not every one.
  const send = (places, is_repeated) => {
    sent = { places, number: Math.max(sent.number, model.get("mark").number) + 1 };
    is_held = true;
    if (!is_repeated) flush();
    else timer ||= setTimeout(flush, HELD_MS);
    draw();
  };
  const fill = ([x0, x1, y0, y1]) =>
    model.get("is_calendar") && x0 !== x1 ? [x0, x1, 0, model.get("places")[1] - 1] : [x0, x1, y0, y1];

  const draw = () => {
    const { xaxis, yaxis } = plot._fullLayout ?? {};
    const mark = dragged ?? find_mark();
    const is_shown = mark.length > 0 && xaxis !== undefined && model.get("places").length > 0;
    area.style.display = is_shown ? "" : "none";
    if (!is_shown) return;
    const put = (box, [left, right], [top, bottom]) => {
      Object.assign(box.style, { left: `${left}px`, top: `${top}px` });
      Object.assign(box.style, { width: `${right - left}px`, height: `${bottom - top}px` });
    };
    const ends = (axis, one, other) =>
      [Math.min(one, other) - 0.5, Math.max(one, other) + 0.5].map((at) => axis.l2p(at)).sort((a, b) => a - b);
    // The frame's line lies outside of it, and is seen at the edge of the map too.
    const line = is_bars() ? 0 : LINE_PIXELS;
    const within = (axis) => [axis._offset - line, axis._offset + axis._length + line];
    put(area, within(xaxis), within(yaxis));
    const [across, down] = [ends(xaxis, mark[0], mark[1]), is_bars() ? [0, yaxis._length] : ends(yaxis, mark[2], mark[3])];
    put(frame, across.map((at) => at + line), down.map((at) => at + line));
    frame.style.boxShadow = is_bars() ? VEIL : FRAME;
  };

  const find_place = (event) => {
    const { xaxis, yaxis } = plot._fullLayout ?? {};
    if (xaxis === undefined || !model.get("places").length) return null;
    const { left, top } = plot.getBoundingClientRect();
    const [x, y] = [event.clientX - left - xaxis._offset, event.clientY - top - yaxis._offset];
    const [width, height] = model.get("places");
    const place = [clamp(Math.round(xaxis.p2l(x)), width), is_bars() ? 0 : clamp(Math.round(yaxis.p2l(y)), height)];
    return { place, is_inside: x >= 0 && y >= 0 && x <= xaxis._length && y <= yaxis._length };
  };
  const on_down = (event) => {
    const found = find_place(event);
    if (!found?.is_inside || event.button !== 0) return;
    // plotly would begin a drag of its own.
    event.preventDefault();
    event.stopPropagation();
    if (event.type !== "pointerdown") return;
    el.focus({ preventScroll: true });
    el.setPointerCapture(event.pointerId);
    start = found.place;
    on_move(event);
  };
  const on_move = (event) => {
    const found = start && find_place(event);
    if (!found) return;
    dragged = fill([start[0], found.place[0], start[1], found.place[1]]);
    draw();
  };
  const stop = () => {
    start = dragged = null;
    draw();
  };
  const on_up = () => {
    if (dragged) send(dragged, false);
    stop();
  };
  const on_key = (event) => {
    const step = STEPS[event.key];
    if (!model.get("places").length || (!step && event.key !== "Escape")) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Escape" && start) {
      stop();
    } else if (event.key === "Escape") {
      send([], event.repeat);
    } else if (!start) {
      send(move(step, event.shiftKey), event.repeat);
    }
  };
  const move = (step, is_stretched) => {
    const [width, height] = model.get("places");
    const [x0, x1, y0, y1] = find_mark();
    if (x0 === undefined) return [0, 0, 0, 0];
    const [bottom, top] = plot._fullLayout?.yaxis?.range ?? [0, 1];
    const down = bottom > top ? -step[1] : step[1];
    const [x, y] = [clamp(x1 + step[0], width), clamp(y1 + down, height)];
    return is_stretched ? fill([x0, x, y0, y]) : [x, x, y, y];
  };
  const describe = () => {
    const is_there = model.get("places").length > 0;
    el.setAttribute("role", is_there ? "application" : "img");
    if (is_there) {
      el.tabIndex = 0;
      el.setAttribute("aria-roledescription", "map of partitions; arrow keys select, shift extends, escape clears");
    }
    draw();
  };
  const changes = [["change:places", describe], ["change:mark", draw]];
  const events = [
    ["pointerdown", on_down], ["mousedown", on_down], ["pointermove", on_move], ["pointerup", on_up],
    ["pointercancel", stop], ["keydown", on_key], ["keyup", flush], ["focusout", flush],
  ];
  for (const [names, hear] of changes) model.on(names, hear);
  for (const [name, hear] of events) el.addEventListener(name, hear, { capture: true });
  describe();
  const release = () => {
    clearTimeout(timer);
    for (const [names, hear] of changes) model.off(names, hear);
    for (const [name, hear] of events) el.removeEventListener(name, hear, { capture: true });
  };
  return { draw, release };
}

function render({ model, el }) {
  const plot = document.createElement("div");
  el.style.position = "relative";
  el.append(plot);
  const brush = make_brushable(model, el, plot);
  let plotly = null;
  let shown = "";
  let is_removed = false;
  let queue = Promise.resolve();

  const fail = (error) => {
    const note = document.createElement("div");
    note.className = "icestats-error";
    note.setAttribute("role", "alert");
    note.textContent = `The chart cannot be drawn: ${error.message}. Run the cell again.`;
    el.replaceChildren(note);
  };
  const later = (work) => {
    queue = queue.then(() => (is_removed ? undefined : work())).catch(fail);
  };
  const fade = (data) => model.get("opacities").map((some, trace) => (data[trace].marker.opacity = some));
  const show = async (is_first = false) => {
    if (shown === model.get("picture")) return;
    shown = model.get("picture");
    const { data, layout } = JSON.parse(shown);
    fade(data);
    if (!is_first) await painted();
    await plotly.react(plot, data, layout, CONFIG);
  };
  const restyle = () => {
    const found = model.get("opacities");
    if (shown !== model.get("picture") || !found.length) return;
    fade(plot.data);
    // plotly.restyle() takes 100 ms for some thousand bars; these are the points that it draws from and their nodes.
    for (const node of plot.querySelectorAll(".barlayer .trace .point")) {
      const bar = node.__data__;
      const opacity = found[bar.trace?.index ?? node.parentNode.parentNode.__data__[0].trace.index]?.[bar.i];
      if (opacity === undefined) continue;
      bar.mo = opacity;
      for (const path of node.querySelectorAll("path")) path.style.opacity = opacity;
    }
  };
  const start = async () => {
    plotly = await load(model);
    await show(true);
    plot.on("plotly_afterplot", brush.draw);
    plot.on("plotly_relayouting", brush.draw);
    plot.on("plotly_click", ({ points: [{ curveNumber, pointNumber }] }) => {
      // What is seen to be marked is unmarked: a second click on what has not been answered yet means the same again.
      const found = model.get("opacities");
      const is_marked = found[curveNumber]?.[pointNumber] === 1 && found.flat().some((one) => one < 1);
      model.send({ kind: "point", trace: curveNumber, point: pointNumber, is_marked });
    });
    brush.draw();
    painted().then(() => model.send({ kind: "shown" }));
  };

  let width = 0;
  const observer = new ResizeObserver(() => {
    // In a page that is not seen there is no width to draw for; a notebook also moves side bars and hides tabs.
    if (!el.clientWidth || el.clientWidth === width) return;
    const is_first = width === 0;
    width = el.clientWidth;
    later(is_first ? start : () => plotly.Plots.resize(plot));
  });
  observer.observe(el);
  const on_label = () => el.setAttribute("aria-label", model.get("label"));
  const changes = [
    ["change:label", on_label],
    ["change:picture", () => plotly && later(() => show())],
    ["change:opacities", () => plotly && later(restyle)],
  ];
  for (const [name, hear] of changes) model.on(name, hear);
  on_label();
  return () => {
    is_removed = true;
    observer.disconnect();
    brush.release();
    for (const [name, hear] of changes) model.off(name, hear);
    plotly?.purge(plot);
  };
}

export default { render };
