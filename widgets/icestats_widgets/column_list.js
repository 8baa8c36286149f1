// A table of columns, one of which is selected. Everything is set as text: strings of the table stay strings.
// Class and title of a cell, and the figures in it, one a line.
const CELLS = [
  ["nulls", "nulls", ["nulls"]],
  ["ndv", "distinct", ["ndv"]],
  ["bounds", "bounds", ["lower", "upper"]],
];
const QUIET = new Set(["unknown", "none", "…"]);

function cell(tag, text, name) {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = `icestats-columns-${name}`;
  return element;
}

function build_row(model, row) {
  const line = document.createElement("tr");
  const head = cell("th", "", "name");
  head.scope = "row";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = row.name;
  button.title = row.name;
  button.dataset.column = row.name;
  head.append(button, cell("span", row.type, "type"));
  line.append(head);
  for (const [name, , figures] of CELLS) {
    const box = cell("td", "", name);
    for (const name of figures) {
      const figure = cell("div", row[name], "figure");
      figure.title = `${row[name]}\n${row[`about_${name}`]}`;
      figure.classList.toggle("icestats-quiet", QUIET.has(row[name]));
      box.append(figure);
    }
    line.append(box);
  }
  line.addEventListener("click", () => {
    model.set("selected", row.name);
    model.save_changes();
  });
  return line;
}

function render({ model, el }) {
  const table = document.createElement("table");
  table.className = "icestats-columns icestats-columns-list";
  table.setAttribute("aria-label", "Columns");
  const head = table.createTHead().insertRow();
  for (const title of ["column", ...CELLS.map(([, title]) => title)]) {
    const th = cell("th", title, "head");
    th.scope = "col";
    head.append(th);
  }
  const body = table.createTBody();
  el.classList.add("icestats-columns-frame");
  el.append(table);

  const mark = () => {
    const selected = model.get("selected");
    for (const line of body.rows) {
      const button = line.querySelector("button");
      const is_selected = button.dataset.column === selected;
      line.classList.toggle("icestats-selected", is_selected);
      button.setAttribute("aria-pressed", String(is_selected));
    }
  };
  const fill = () => {
    const focused = document.activeElement?.dataset?.column;
    body.replaceChildren(...model.get("rows").map((row) => build_row(model, row)));
    mark();
    if (focused !== undefined) {
      [...body.querySelectorAll("button")].find((b) => b.dataset.column === focused)?.focus();
    }
  };
  model.on("change:rows", fill);
  model.on("change:selected", mark);
  fill();
  return () => {
    model.off("change:rows", fill);
    model.off("change:selected", mark);
  };
}

export default { render };
