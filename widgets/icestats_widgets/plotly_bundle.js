// plotly's code, unpacked and evaluated once a page: while the kernel still makes the first figure.
const unpacked = (globalThis.__icestats_plotly_js ??= new Map());

async function unpack(gzipped) {
  const stream = new Blob([gzipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const text = await new Response(stream).text();
  // The code hands itself to a CommonJS module where there is one, and puts itself into the window too.
  const module = `const module = { exports: {} };\n${text}\nexport default module.exports;`;
  const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
  const before = Object.getOwnPropertyDescriptor(globalThis, "Plotly");
  try {
    return (await import(url)).default;
  } finally {
    if (before) Object.defineProperty(globalThis, "Plotly", before);
    else delete globalThis.Plotly;
    URL.revokeObjectURL(url);
  }
}

export default {
  initialize({ model }) {
    const version = model.get("version");
    if (!unpacked.has(version)) unpacked.set(version, unpack(model.get("gzipped")));
  },
};
