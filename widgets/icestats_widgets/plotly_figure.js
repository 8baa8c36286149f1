// Runs plotly's own FigureWidget code, which the bundle has unpacked.
const PATIENCE_MS = 10_000;

async function load(model) {
  // A page that is opened again makes its models in any order, and the bundle's code may run after this.
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    let reason = new Error("plotly's code has not come");
    try {
      const bundle = await model.widget_manager.get_model(model.get("_bundle_id"));
      const found = globalThis.__icestats_plotly?.get(bundle.get("version"));
      if (found) return found;
    } catch (error) {
      reason = error;
    }
    if (Date.now() > end) throw reason;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function follow_width(el) {
  // plotly looks at its width only when the window's changes; a notebook also moves side bars and hides tabs.
  let width = el.clientWidth;
  const observer = new ResizeObserver(() => {
    if (el.clientWidth && el.clientWidth !== width) {
      width = el.clientWidth;
      window.dispatchEvent(new Event("resize"));
    }
  });
  observer.observe(el);
  return () => observer.disconnect();
}

function make_brushable(model, el) {
  // A mouse drags a rectangle or clicks a cell; arrow keys move the mark, with shift they stretch it.
  let count = 0;
  let plot;
  let is_removed = false;
  let moved = null;
  const send = (brush) => {
    model.set("brush", { ...brush, number: (count += 1) });
    model.save_changes();
  };
  const on_selected = (event) => {
    const last = event?.selections?.at(-1);
    if (last?.x0 === undefined) return;
    send({ x: [last.x0, last.x1], ...(model.get("places")[1] > 1 ? { y: [last.y0, last.y1] } : {}) });
  };
  const on_click = (event) => {
    const { x, y } = event.points[0];
    send({ x: [x, x], ...(model.get("places")[1] > 1 ? { y: [y, y] } : {}) });
  };
  const on_key = (event) => {
    const [width, height] = model.get("places");
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.key === "Escape") {
      moved = null;
      send({ clear: true });
    }
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    if (plot?.layout?.yaxis?.autorange === "reversed") step[1] = -step[1];
    const mark = moved ?? model.get("mark");
    let [x0, x1, y0, y1] = mark.length ? mark : [0, 0, 0, 0];
    const clamp = (value, size) => Math.max(0, Math.min(size - 1, value));
    if (mark.length && event.shiftKey) {
      [x1, y1] = [clamp(x1 + step[0], width), clamp(y1 + step[1], height)];
    } else if (mark.length) {
      x0 = x1 = clamp(x1 + step[0], width);
      y0 = y1 = clamp(y1 + step[1], height);
    }
    // The next key may come before the kernel has answered.
    moved = [x0, x1, y0, y1];
    send({ x: [x0, x1], ...(height > 1 ? { y: [y0, y1] } : {}) });
  };
  const on_mark = () => (moved = null);
  const follow = () => {
    if (!model.get("places").length) return;
    if (el.dataset.brushable || is_removed) return;
    plot = el.on ? el : el.querySelector(".js-plotly-plot");
    if (!plot?.on) {
      // plotly makes the plot after the model is there.
      setTimeout(follow, 50);
      return;
    }
    el.dataset.brushable = "yes";
    el.tabIndex = 0;
    el.setAttribute("role", "application");
    el.setAttribute("aria-roledescription", "map of partitions; arrow keys mark, shift stretches, escape clears");
    plot.on("plotly_selected", on_selected);
    plot.on("plotly_click", on_click);
    el.addEventListener("keydown", on_key);
  };
  model.on("change:places", follow);
  model.on("change:mark", on_mark);
  follow();
  return () => {
    is_removed = true;
    model.off("change:places", follow);
    model.off("change:mark", on_mark);
    el.removeEventListener("keydown", on_key);
  };
}

export default () => {
  let widget;
  return {
    async initialize(context) {
      widget = (await load(context.model))();
      await widget.initialize?.(context);
    },
    async render(context) {
      context.el.setAttribute("role", "img");
      context.el.setAttribute("aria-label", context.model.get("label"));
      const remove = await widget.render(context);
      const stop = follow_width(context.el);
      const release = make_brushable(context.model, context.el);
      const name = () => context.el.setAttribute("aria-label", context.model.get("label"));
      context.model.on("change:label", name);
      return () => {
        context.model.off("change:label", name);
        release();
        stop();
        remove?.();
      };
    },
  };
};
