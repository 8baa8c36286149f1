// A table of columns, one of which is selected. Everything is set as text: strings of the table stay strings.
const FIGURES = [
  ["nulls", "nulls"],
  ["ndv", "distinct"],
  ["lower", "lower bound"],
  ["upper", "upper bound"],
];

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
  for (const [name] of FIGURES) {
    const figure = cell("td", row[name], name);
    figure.title = `${row[name]}\n${row[`about_${name}`]}`;
    if (row[name] === "unknown" || row[name] === "none" || row[name] === "…") {
      figure.classList.add("icestats-quiet");
    }
    line.append(figure);
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
  for (const title of ["column", ...FIGURES.map(([, title]) => title)]) {
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
