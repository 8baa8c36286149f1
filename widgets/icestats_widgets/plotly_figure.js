// Runs plotly's own FigureWidget code, which is unpacked and evaluated once a page and not once a figure.
const unpacked = (globalThis.__icestats_plotly ??= new Map());
const PATIENCE_MS = 10_000;

async function find_bundle(model) {
  // After a reload of the page the models come back in any order.
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await model.widget_manager.get_model(model.get("_bundle_id"));
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function unpack(gzipped) {
  const stream = new Blob([gzipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const text = await new Response(stream).text();
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return (await import(url)).default;
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function load(model) {
  const version = model.get("_bundle_version");
  if (!unpacked.has(version)) {
    unpacked.set(version, find_bundle(model).then((bundle) => unpack(bundle.get("gzipped"))));
  }
  return unpacked.get(version);
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
      return () => {
        stop();
        remove?.();
      };
    },
  };
};
