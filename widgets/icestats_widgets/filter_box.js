// A line to type a filter into; what is wrong with it stands below, as text, while one types.
const TYPING_MS = 250;

function render({ model, el }) {
  const id = `icestats-filter-${Math.random().toString(36).slice(2)}`;
  const label = document.createElement("label");
  label.htmlFor = id;
  label.textContent = model.get("label");
  const input = document.createElement("input");
  input.id = id;
  input.type = "text";
  input.spellcheck = false;
  input.autocomplete = "off";
  input.className = "icestats-filter-input";
  input.setAttribute("aria-describedby", `${id}-error`);
  const error = document.createElement("div");
  error.id = `${id}-error`;
  error.className = "icestats-filter-error";
  error.setAttribute("role", "status");
  const ideas = document.createElement("div");
  ideas.className = "icestats-filter-ideas";
  el.classList.add("icestats-filter");
  el.append(label, input, error, ideas);

  let timer;
  const send = () => {
    clearTimeout(timer);
    if (model.get("value") === input.value) return;
    model.set("value", input.value);
    model.save_changes();
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(send, TYPING_MS);
  });
  input.addEventListener("change", send);
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") send();
  });
  const on_value = () => {
    if (document.activeElement !== input) input.value = model.get("value");
  };
  const on_error = () => {
    error.textContent = model.get("error");
    input.setAttribute("aria-invalid", String(model.get("error") !== ""));
  };
  const on_ideas = () => {
    ideas.replaceChildren(
      ...model.get("ideas").map((text) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = text;
        button.title = `Try ${text}`;
        button.addEventListener("click", () => {
          input.value = text;
          send();
        });
        return button;
      }),
    );
  };
  const changes = [["change:value", on_value], ["change:error", on_error], ["change:ideas", on_ideas]];
  for (const [name, hear] of changes) model.on(name, hear);
  input.value = model.get("value");
  on_error();
  on_ideas();
  return () => {
    for (const [name, hear] of changes) model.off(name, hear);
  };
}

export default { render };
