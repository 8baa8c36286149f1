// plotly's own FigureWidget code, unpacked and evaluated once a page: while the kernel still makes the first figure.
const unpacked = (globalThis.__icestats_plotly ??= new Map());

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

export default {
  initialize({ model }) {
    const version = model.get("version");
    if (!unpacked.has(version)) unpacked.set(version, unpack(model.get("gzipped")));
  },
};
