// A table of any length of which only the visible rows are here: the kernel sorts, filters and pages.
// Everything is set as text: strings of the table stay strings. Row numbers are the only numbers.
const MOST_PIXELS = 12_000_000;
const AHEAD = 24;
const FILTER_MS = 250;

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function draw_bars(cell) {
  // Heights of a histogram, then nulls and NaN as segments of their own.
  const box = make("span", "icestats-spark");
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", cell.h ?? "");
  const bars = make("span", "icestats-spark-bars");
  for (const height of cell.g) {
    const bar = make("i");
    bar.style.height = `${Math.max(height > 0 ? 4 : 0, 100 * height)}%`;
    bars.append(bar);
  }
  box.append(bars);
  for (const [name, share] of [["null", cell.n], ["nan", cell.a]]) {
    if (share === undefined) continue;
    const segment = make("span", `icestats-spark-${name}`);
    const fill = make("i");
    fill.style.height = `${Math.max(share > 0 ? 6 : 0, 100 * share)}%`;
    segment.append(fill);
    box.append(segment);
  }
  return box;
}

function draw_parts(parts) {
  const bar = make("span", "icestats-cell-parts");
  for (const [share, name] of parts) {
    const piece = make("i", `icestats-part-${name}`);
    piece.style.width = `${100 * share}%`;
    bar.append(piece);
  }
  return bar;
}

function copy_button(text) {
  const button = make("button", "icestats-copy", "copy");
  button.type = "button";
  button.title = "Copy to the clipboard";
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.body.appendChild(make("textarea", "", text));
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  return button;
}

function draw_cell(column, cell, element) {
  if (cell.h) element.title = cell.h;
  if (cell.k) element.classList.add(`icestats-cell-${cell.k}`);
  if (cell.g) {
    element.append(draw_bars(cell));
    return;
  }
  if (cell.b !== undefined) {
    const bar = make("i", "icestats-cell-bar");
    bar.style.width = `${100 * cell.b}%`;
    element.append(bar);
  }
  if (cell.p) element.append(draw_parts(cell.p));
  const text = make("span", "icestats-cell-text", cell.t ?? "");
  element.append(text);
  if (cell.s !== undefined) element.append(make("span", "icestats-cell-second", cell.s));
  if (cell.c) element.append(copy_button(cell.c));
}

function render({ model, el }) {
  const frame = make("div", "icestats-table");
  const scroll = make("div", "icestats-table-scroll");
  const head = make("div", "icestats-table-head");
  const space = make("div", "icestats-table-space");
  const empty = make("div", "icestats-table-empty");
  empty.setAttribute("role", "status");
  scroll.setAttribute("role", model.get("is_tree") ? "treegrid" : "grid");
  scroll.setAttribute("aria-label", model.get("label"));
  head.setAttribute("role", "row");
  const head_group = make("div", "icestats-table-headgroup");
  head_group.setAttribute("role", "rowgroup");
  head_group.append(head);
  space.setAttribute("role", "rowgroup");
  scroll.append(head_group, space);
  let active = 0;
  let wanted = "";
  let frame_asked = 0;
  let has_focus = false;
  // A row that was chosen before it was there.
  let awaited = -1;

  const height_of = () => model.get("row_height");
  const total = () => model.get("row_count");
  const pixels = () => Math.min(total() * height_of(), MOST_PIXELS);
  const body_height = () => Math.max(height_of(), scroll.clientHeight - head_group.offsetHeight);
  // What fits is known without measuring: a theme that is being changed gives the head any height for a moment.
  const fits = () => Math.max(1, model.get("most_rows"));
  const is_squeezed = () => total() * height_of() > MOST_PIXELS;

  function first_row() {
    if (!is_squeezed()) return Math.floor(scroll.scrollTop / height_of());
    const range = Math.max(1, pixels() - body_height());
    return Math.round((scroll.scrollTop / range) * Math.max(0, total() - fits() + 1));
  }

  function top_of(row, first) {
    return is_squeezed() ? scroll.scrollTop + (row - first) * height_of() : row * height_of();
  }

  function draw_head() {
    const sort = model.get("sort");
    const columns = model.get("columns");
    frame.style.setProperty("--icestats-columns", columns.map((c) => c.width).join(" "));
    const least = columns.reduce((sum, c) => sum + parseInt(/\d+/.exec(c.width)[0], 10), 0);
    frame.style.setProperty("--icestats-least", `${least}px`);
    const focused = head.contains(document.activeElement) ? document.activeElement.dataset.column : undefined;
    head.replaceChildren(
      ...columns.map((column) => {
        const box = make("div", `icestats-table-th icestats-align-${column.align ?? "start"}`);
        box.setAttribute("role", "columnheader");
        if (column.about) box.title = column.about;
        if (!column.sortable) {
          box.append(make("span", "", column.title));
          return box;
        }
        const is_sorted = sort.column === column.name;
        box.setAttribute("aria-sort", is_sorted ? (sort.descending ? "descending" : "ascending") : "none");
        const button = make("button", "", column.title);
        button.type = "button";
        button.dataset.column = column.name;
        button.append(make("span", "icestats-arrow", is_sorted ? (sort.descending ? " ▼" : " ▲") : ""));
        button.addEventListener("click", () => model.send({ kind: "sort", column: column.name }));
        box.append(button);
        return box;
      }),
    );
    if (focused) head.querySelector(`[data-column="${focused}"]`)?.focus({ preventScroll: true });
  }

  function build_row(row, number, top) {
    const columns = model.get("columns");
    const line = make("div", "icestats-table-row");
    line.setAttribute("role", "row");
    line.setAttribute("aria-rowindex", String(number + 2));
    line.tabIndex = number === active ? 0 : -1;
    line.dataset.row = String(number);
    line.style.height = `${height_of()}px`;
    line.style.transform = `translateY(${top}px)`;
    if (!row) {
      line.classList.add("icestats-table-pending");
      line.append(...columns.map(() => make("div", "icestats-table-td", "…")));
      for (const cell of line.children) cell.setAttribute("role", "gridcell");
      return line;
    }
    line.dataset.key = row.key;
    const is_selected = model.get("selected").includes(row.key);
    line.setAttribute("aria-selected", String(is_selected));
    line.classList.toggle("icestats-selected", is_selected);
    if (row.k) line.classList.add(`icestats-row-${row.k}`);
    if (model.get("is_tree")) {
      line.setAttribute("aria-level", String(row.depth + 1));
      if (row.open !== undefined) line.setAttribute("aria-expanded", String(row.open));
    }
    columns.forEach((column, place) => {
      const cell = row.cells[place] ?? {};
      const element = make("div", `icestats-table-td icestats-align-${column.align ?? "start"}`);
      element.setAttribute("role", place === 0 ? "rowheader" : "gridcell");
      if (place === 0 && model.get("is_tree")) {
        element.style.paddingInlineStart = `${8 + 16 * row.depth}px`;
        const twisty = make("span", "icestats-twisty", row.open === undefined ? "" : row.open ? "▾" : "▸");
        twisty.setAttribute("aria-hidden", "true");
        element.append(twisty);
      }
      draw_cell(column, cell, element);
      line.append(element);
    });
    return line;
  }

  function draw() {
    frame_asked = 0;
    const page = model.get("page");
    const rows = page.rows ?? [];
    const first = Math.max(0, Math.min(first_row(), Math.max(0, total() - 1)));
    const last = Math.min(total(), first + fits() + 1);
    active = Math.max(0, Math.min(active, total() - 1));
    const lines = [];
    let is_there = true;
    for (let number = first; number < last; number += 1) {
      const row = rows[number - page.offset];
      is_there &&= row !== undefined;
      lines.push(build_row(row, number, top_of(number, first)));
    }
    const focused = has_focus;
    space.replaceChildren(...lines);
    const note = model.get("note");
    empty.textContent = note;
    empty.hidden = !note;
    frame.classList.toggle("icestats-table-none", total() === 0 && note !== "");
    if (!lines.some((line) => line.tabIndex === 0) && lines.length) lines[0].tabIndex = 0;
    if (focused) space.querySelector(`[data-row="${active}"]`)?.focus({ preventScroll: true });
    if (!is_there) ask(first, last);
    if (awaited !== active) awaited = -1;
    const line = lines.find((one) => Number(one.dataset.row) === awaited && one.dataset.key !== undefined);
    if (line) choose(line);
  }

  function ask(first, last) {
    const offset = Math.max(0, first - AHEAD);
    const count = last - offset + AHEAD;
    const text = `${offset} ${count} ${model.get("page").number}`;
    if (text === wanted) return;
    wanted = text;
    model.send({ kind: "window", offset, count });
  }

  function redraw() {
    if (!frame_asked) frame_asked = requestAnimationFrame(draw);
  }

  function resize() {
    const rows = model.get("most_rows");
    const high = Math.min(Math.max(total(), model.get("least_rows")), rows) * height_of();
    scroll.style.height = `${high + (head_group.offsetHeight || 30) + 2}px`;
    space.style.height = `${pixels()}px`;
    scroll.setAttribute("aria-rowcount", String(total() + 1));
    redraw();
  }

  function move(row) {
    active = Math.max(0, Math.min(total() - 1, row));
    const first = first_row();
    const whole = Math.floor(body_height() / height_of());
    if (active < first || active >= first + whole) {
      const range = Math.max(1, pixels() - body_height());
      const goal = active < first ? active : active - whole + 1;
      scroll.scrollTop = is_squeezed() ? (goal / Math.max(1, total() - fits() + 1)) * range : goal * height_of();
    }
    has_focus = true;
    draw();
  }

  // What is asked for is what is not seen: asking again before the kernel has answered means the same.
  function choose(line) {
    const { key, row } = line.dataset;
    awaited = key === undefined ? Number(row) : -1;
    if (key === undefined) return;
    const [is_selected, is_open] = ["aria-selected", "aria-expanded"].map((name) => line.getAttribute(name) === "true");
    model.send({ kind: "select", key, is_selected, is_open });
  }

  function toggle(line) {
    const is_open = line.getAttribute("aria-expanded");
    if (is_open !== null) model.send({ kind: "toggle", key: line.dataset.key, open: is_open === "false" });
  }

  space.addEventListener("click", (event) => {
    const line = event.target.closest("[role=row]");
    if (!line) return;
    active = Number(line.dataset.row);
    has_focus = true;
    if (event.target.classList.contains("icestats-twisty")) toggle(line);
    else choose(line);
    redraw();
  });
  space.addEventListener("dblclick", (event) => {
    const line = event.target.closest("[role=row]");
    if (line && !event.target.classList.contains("icestats-twisty")) toggle(line);
  });
  space.addEventListener("keydown", (event) => {
    const line = event.target.closest("[role=row]");
    if (!line || event.target.tagName === "BUTTON") return;
    const keys = {
      ArrowDown: () => move(active + 1),
      ArrowUp: () => move(active - 1),
      PageDown: () => move(active + fits() - 2),
      PageUp: () => move(active - fits() + 2),
      Home: () => move(0),
      End: () => move(total() - 1),
      Enter: () => choose(line),
      " ": () => choose(line),
      ArrowRight: () => line.getAttribute("aria-expanded") === "false" && toggle(line),
      ArrowLeft: () => line.getAttribute("aria-expanded") === "true" && toggle(line),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  space.addEventListener("focusin", (event) => {
    const line = event.target.closest("[role=row]");
    if (line) active = Number(line.dataset.row);
    has_focus = true;
  });
  space.addEventListener("focusout", (event) => {
    // A row that is replaced while it has the focus gives it back to its successor.
    if (event.relatedTarget || document.hasFocus()) has_focus = frame_asked !== 0 && !event.relatedTarget;
  });
  scroll.addEventListener("scroll", redraw, { passive: true });

  if (model.get("placeholder")) {
    const search = make("input", "icestats-table-filter");
    search.type = "search";
    search.placeholder = model.get("placeholder");
    search.setAttribute("aria-label", `Filter: ${model.get("label")}`);
    let timer;
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => model.send({ kind: "filter", text: search.value }), FILTER_MS);
    });
    frame.append(search);
  }
  frame.append(scroll, empty);
  el.append(frame);

  const on_label = () => scroll.setAttribute("aria-label", model.get("label"));
  const on_loading = () => frame.classList.toggle("icestats-loading", model.get("is_loading"));
  const on_head = () => {
    draw_head();
    resize();
  };
  const on_page = () => {
    wanted = "";
    resize();
  };
  const on_origin = () => {
    active = 0;
    scroll.scrollTop = 0;
    redraw();
  };
  const changes = [
    ["change:label", on_label],
    ["change:origin", on_origin],
    ["change:columns change:sort", on_head],
    ["change:page change:row_count change:note change:row_height change:most_rows", on_page],
    ["change:selected", redraw],
    ["change:is_loading", on_loading],
  ];
  for (const [names, hear] of changes) model.on(names, hear);
  const observer = new ResizeObserver(redraw);
  observer.observe(scroll);
  draw_head();
  on_loading();
  resize();
  // In the frame after the one that shows it.
  requestAnimationFrame(() => requestAnimationFrame(() => model.send({ kind: "shown" })));
  return () => {
    observer.disconnect();
    for (const [names, hear] of changes) model.off(names, hear);
  };
}

export default { render };
