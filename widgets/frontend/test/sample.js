/**
 * A document with every kind of block, and a kernel that answers as Python does: for the tests, and for a look at the page
 * in a browser (`python -m http.server`, then widgets/frontend/test/sample.html).
 */
import { makeModel } from "./model.js";

const HOSTILE = "<img src=x onerror=alert(1)>";
const DAYS = 140;

/** @param {number} width */
export function drawCalendar(width) {
  const size = Math.min(22, (width - 40) / (DAYS / 7));
  const cells = Array.from({ length: DAYS }, (_, day) => {
    const [x, y] = [36 + Math.floor(day / 7) * size, 6 + (day % 7) * size];
    const share = Math.round(15 + 80 * Math.abs(Math.sin(day / 9)));
    return `<rect data-key="day-${day}" x="${x}" y="${y}" width="${size - 2}" height="${size - 2}" rx="2"
      fill="color-mix(in srgb, var(--icestats-accent, #0068a3) ${share}%, var(--icestats-back, #fff))"><title>day ${day}: ${share} MB</title></rect>`;
  });
  return `<svg viewBox="0 0 ${width} ${size * 7 + 26}" width="${width}" height="${size * 7 + 26}" font-size="11">
    <g class="plot" data-plot="days" data-x="36" data-y="6" data-width="${(DAYS / 7) * size}" data-height="${7 * size}">${cells.join("")}</g>
    <text x="36" y="${size * 7 + 20}" fill="var(--icestats-quiet, #59636e)">June</text></svg>`;
}

/** @param {number} width */
export function drawHistogram(width) {
  const count = 60;
  const step = (width - 60) / count;
  const bars = Array.from({ length: count }, (_, bin) => {
    const high = 150 * Math.exp(-(((bin - 22) / 13) ** 2));
    return `<rect x="${50 + bin * step}" y="${166 - high}" width="${step - 1}" height="${high}" fill="var(--icestats-accent, #0068a3)"><title>${bin} to ${bin + 1}:
${Math.round(high * 1000).toLocaleString("en")} rows ± 1.7%</title></rect>`;
  });
  return `<svg viewBox="0 0 ${width} 200" width="${width}" height="200" font-size="11">
    <g class="plot" data-plot="bars" data-x="50" data-y="10" data-width="${width - 60}" data-height="156">
    <rect x="50" y="10" width="${width - 60}" height="156" fill="transparent"/>${bars.join("")}</g>
    <path d="M50 166H${width - 10}" stroke="var(--icestats-line, #ccc)"/><text x="50" y="184" fill="var(--icestats-quiet, #59636e)">0 €</text>
    <text x="${width - 40}" y="184" fill="var(--icestats-quiet, #59636e)">60 €</text></svg>`;
}

const SPARK = `<svg viewBox="0 0 90 28" preserveAspectRatio="none">${[4, 9, 16, 24, 20, 12, 7, 3]
  .map((high, at) => `<rect x="${at * 11}" y="${28 - high}" width="10" height="${high}" fill="var(--icestats-accent, #0068a3)"/>`).join("")}</svg>`;

/** @param {number} number */
export function makeRow(number) {
  const name = number === 3 ? HOSTILE : `warehouse/events/data/measurement_station_temperature_${String(number).padStart(6, "0")}.parquet`;
  return {
    key: `file-${number}`, depth: number % 4 ? 1 : 0, ...(number % 4 ? {} : { open: true }),
    cells: [
      { t: name, h: name }, { t: `${((number * 37) % 512) + 1} MB`, b: ((number * 37) % 512) / 512, h: "1,234,567 bytes" },
      { t: ((number * 7919) % 100000).toLocaleString("en"), b: ((number * 7919) % 100000) / 100000 },
      { t: number % 3 ? "kept" : "skipped", k: number % 3 ? "kept" : "skipped" }, { t: "2026-09-01 to 2026-09-02" },
      { t: number % 5 ? "fresh" : "missing", k: number % 5 ? "good" : "bad", a: number % 5 ? undefined : "statistics.fill" },
    ],
  };
}

const FILE_COLUMNS = [
  { name: "name", title: "file", width: "minmax(180px, 3fr)", sortable: true, about: "Path below the table's location" },
  { name: "size", title: "size", width: "minmax(90px, 1fr)", align: "end", sortable: true },
  { name: "records", title: "records", width: "minmax(90px, 1fr)", align: "end", sortable: true },
  { name: "verdict", title: "verdict", width: "90px", sortable: true },
  { name: "range", title: "event_time", width: "minmax(150px, 1fr)", sortable: false },
  { name: "state", title: "statistics", width: "90px", sortable: true },
];

/** @param {number} count */
export function makeGrid(count, more = {}) {
  return {
    is: "grid", id: "files", label: "Files", columns: FILE_COLUMNS, row_count: count, offset: 0, number: 1, is_tree: true, most_rows: 10,
    rows: Array.from({ length: Math.min(count, 60) }, (_, number) => makeRow(number)), sort: { column: "size", descending: true },
    search: { placeholder: "Search files, or records > 50000", text: "" }, selected: ["file-2"], note: "", name: "files", ...more,
  };
}

function makeColumns() {
  const columns = [
    { name: "name", title: "column", width: "minmax(120px, 2fr)", sortable: true }, { name: "type", title: "type", width: "90px" },
    { name: "shape", title: "shape", width: "110px" }, { name: "nulls", title: "nulls", width: "80px", align: "end" }, { name: "ndv", title: "distinct", width: "90px", align: "end", sortable: true },
  ];
  const names = ["event_time", "device_id", "price", "quantity", "person.address.city", "person.address.country", "person.address.street"];
  const rows = names.map((name, at) => ({ key: name, cells: [{ t: name, k: "code" }, { t: "timestamptz" }, { svg: SPARK, h: "Most between 3 and 9" }, { t: at ? "0" : "unknown", k: at ? "" : "quiet" }, { t: `${at * 371}`, b: at / 7 }] }));
  return { is: "grid", id: "columns", label: "Columns", columns, row_count: rows.length, offset: 0, rows, number: 1, row_height: 34, selected: ["price"], note: "7 columns", name: "columns" };
}

/** @param {number} width */
export function makeTraits(width) {
  const half = width > 1000 ? (width - 60) / 2 : width - 40;
  return {
    heard: {},
    head: {
      title: "demo.events", subtitle: "snapshot 8123 of 2026-11-21 09:30 UTC", busy: "",
      facts: [{ label: "records", value: "12,400,000" }, { label: "data files", value: "2,047" }, { label: "size", value: "9.4 GB" }, { label: "delete files", value: "3" }, { label: "statistics", value: "2 commits behind", about: "Snapshots since" }],
    },
    query: { text: "", error: "", summary: "All 2,047 files would be read.", busy: false, chips: [{ text: "event_time in 2026-09-01 to 2026-09-07", action: { field: "event_time" }, about: "From the calendar" }], ideas: ["price < 3.2", "event_time >= '2026-09-14T00:00:00+00:00'"] },
    tabs: [{ name: "overview", title: "Overview" }, { name: "columns", title: "Columns" }, { name: "query", title: "Query" }, { name: "layout", title: "Layout" }, { name: "history", title: "History" }, { name: "statistics", title: "Statistics" }],
    tab: "overview",
    index: {
      partitions: { tab: "overview", title: "Partitions" }, findings: { tab: "overview", title: "What to look at first" }, estimates: { tab: "overview", title: "Estimates" }, tree: { tab: "overview", title: "Files" },
      columns: { tab: "columns", title: "Columns" }, histogram: { tab: "columns", title: "Distribution" }, compute: { tab: "statistics", title: "Compute" },
    },
    arrangement: { collapsed: [], wide: ["tree"] },
    part_partitions: {
      name: "partitions", caption: "Bytes of data files by day: drag over days to select them.", is_busy: false, code: "table.partitions()",
      blocks: [{ is: "form", fields: [{ is: "choice", name: "measure", label: "", value: "bytes", options: [{ value: "bytes", text: "bytes" }, { value: "files", text: "files" }, { value: "records", text: "records" }] }] },
        { is: "figure", id: "calendar", svg: drawCalendar(half), label: "Partitions by day", marks: "xy", zoom: true, zoomed: true, typed: null, log: null, name: "partitions" }],
    },
    part_findings: {
      name: "findings", caption: "Worst first.", is_busy: true, code: "table.layout().findings",
      blocks: [
        { is: "card", id: "small", title: "1,204 files are smaller than 8 MB", tone: "bad", is_open: true, actions: [{ is: "button", name: "fix", label: "Show the SQL", tone: "primary" }], blocks: [{ is: "text", text: "A query over a week opens 312 of them.", tone: "" }, { is: "facts", facts: [{ label: "median", value: "1.9 MB" }, { label: "would be", value: "94 files" }] }, { is: "code", text: "CALL demo.system.rewrite_data_files(\n  table => 'events', options => map('min-input-files', '5'))" }] },
        { is: "card", id: "overlap", title: `Manifests overlap on ${HOSTILE}`, tone: "fair", is_open: false, actions: [], blocks: [{ is: "text", text: "…", tone: "quiet" }] },
        { is: "text", text: "Nothing else stands out.", tone: "quiet" },
      ],
    },
    part_estimates: { name: "estimates", caption: "No filter yet: type one above.", is_busy: false, blocks: [], code: "" },
    part_tree: { name: "tree", caption: "Manifests and the files in them.", is_busy: false, code: "table.files()", blocks: [makeGrid(450_000)] },
    part_columns: { name: "columns", caption: "What is known of each column.", is_busy: false, code: "table.columns()", blocks: [makeColumns()] },
    part_histogram: {
      name: "histogram", caption: "Of price: 12,400,000 rows, from a sketch of snapshot 8121.", is_busy: false, code: "table.histogram(\"price\")",
      blocks: [{ is: "figure", id: "bars", svg: drawHistogram(half), label: "Distribution of price", marks: "x", zoom: true, zoomed: false, typed: { lower: "", upper: "" }, log: false, name: "price" },
        { is: "side", shares: [1, 1], blocks: [{ is: "facts", facts: [{ label: "median", value: "21.40 €" }, { label: "distinct", value: "about 4,100" }] }, { is: "text", text: "The tail is longer than the figure.", tone: "quiet" }] }],
    },
    part_compute: {
      name: "compute", caption: "One scan of 12 columns.", is_busy: false, code: "table.compute()",
      blocks: [
        { is: "form", fields: [
          { is: "many", name: "columns", label: "columns", value: ["price"], options: [{ value: "price", text: "price" }, { value: "quantity", text: "quantity" }, { value: "x", text: HOSTILE }] },
          { is: "toggle", name: "partitions", label: "by partition", value: true }, { is: "number", name: "k", label: "k of KLL", value: 200, least: 8, most: 65535 }, { is: "text", name: "where", label: "where", value: "" },
          { is: "choice", name: "engine", label: "for", value: "trino", options: ["spark", "trino", "presto", "impala", "hive", "dremio"].map((value) => ({ value, text: value })) },
          { is: "button", name: "go", label: "Compute", tone: "primary" }, { is: "button", name: "undo", label: "Undo", tone: "danger" }, { is: "button", name: "off", label: "Reload", disabled: true }, { is: "progress", name: "progress", label: "12 s to go", value: 40, most: 100 }] },
        { is: "text", text: "The catalog refused: the table has changed.", tone: "bad" },
      ],
    },
  };
}

/** @param {number} width   a model that answers, as far as that needs no statistics */
export function makeKernel(width) {
  const model = makeModel(makeTraits(width));
  const answers = /** @type {Record<string, (value: any) => void>} */ ({
    "page.tab": ({ name }) => model.set("tab", name),
    "page.collapse": ({ part, collapsed }) => change(part, "collapsed", collapsed),
    "page.widen": ({ part, wide }) => change(part, "wide", wide),
    "query.type": ({ text }) => model.set("query", { ...model.get("query"), text, error: text.endsWith("<") ? "After < a value is missing." : "", summary: text ? "12 of 2,047 files are kept, 31 of 640 manifests." : "All 2,047 files would be read." }),
    "query.enter": (value) => answers["query.type"](value),
    "query.drop": () => model.set("query", { ...model.get("query"), chips: [] }),
    "query.complete": ({ text, cursor, number }) => {
      const begun = /[\w.]*$/.exec(text.slice(0, cursor))?.[0] ?? "";
      const items = ["price", "person.address.city", "quantity", "event_time", "device_id"].filter((name) => name.startsWith(begun)).map((name) => ({ text: name, about: "double, 0.01 to 9,120" }));
      model.receive({ kind: "completions", number, start: cursor - begun.length, items });
    },
    "tree.files.window": ({ offset, count, number }) => {
      const rows = Array.from({ length: Math.min(count, 450_000 - offset) }, (_, place) => makeRow(offset + place));
      model.receive({ kind: "rows", grid: "tree.files", offset, row_count: 450_000, rows, number });
    },
  });
  const change = (/** @type {string} */ part, /** @type {"collapsed" | "wide"} */ list, /** @type {boolean} */ on) => {
    const now = model.get("arrangement");
    model.set("arrangement", { ...now, [list]: on ? [...now[list], part] : now[list].filter((/** @type {string} */ name) => name !== part) });
  };
  const send = model.send;
  model.send = (/** @type {any} */ content) => {
    send(content);
    setTimeout(() => {
      answers[content.action]?.(content.value);
      model.set("heard", { view: content.view, number: content.number });
    }, 30);
  };
  return model;
}
