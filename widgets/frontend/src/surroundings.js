// What the page is shown in: a notebook, an app, light or dark.
/** @import { Link } from "./link.js" */

// Jupyter's boxes of outputs that have nothing to scroll, and would hold the filter bar back.
const BOXES = [".jp-OutputArea-output", ".jp-OutputArea-child", ".jp-OutputArea"];
const DARK_MARKS = ["data-jp-theme-light", "data-vscode-theme-kind", "data-theme", "theme", "class", "style"];

/**
 * Let the filter bar stick to the top of what scrolls, once the page has its place.
 * @param {HTMLElement} el
 */
export function letStick(el) {
  /** @type {HTMLElement[]} */
  let boxes = [];
  const observer = new ResizeObserver(() => {
    boxes = BOXES.map((name) => /** @type {HTMLElement | null} */ (el.closest(name))).filter((box) => box !== null);
    for (const box of boxes) box.classList.add("icestats-unboxed");
    if (el.isConnected) observer.disconnect();
  });
  observer.observe(el);
  return () => {
    observer.disconnect();
    for (const box of boxes) box.classList.remove("icestats-unboxed");
  };
}

/**
 * Mark the page as dark when what is behind it is.
 * @param {HTMLElement} el
 */
export function followTheme(el) {
  const look = () => el.firstElementChild?.classList.toggle("icestats-dark", isDark(el));
  const query = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(look);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true, attributeFilter: DARK_MARKS });
  const sizes = new ResizeObserver(look);
  sizes.observe(el);
  query.addEventListener("change", look);
  look();
  return () => {
    observer.disconnect();
    sizes.disconnect();
    query.removeEventListener("change", look);
  };
}

/**
 * Red, green, blue and opacity of a colour, 0 to 255 each; painted, as a page may give it as `color(srgb 1 1 1)` or `oklch(1 0 0)`, too.
 * @param {string} colour
 */
function paint(colour) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d");
  if (!context) return [0, 0, 0, 0];
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}

/** @param {HTMLElement} el */
function isDark(el) {
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false";
  for (let at = /** @type {Node | null} */ (el); at; at = at.parentNode ?? /** @type {ShadowRoot} */ (at).host ?? null) {
    const [red, green, blue, alpha] = at instanceof Element ? paint(getComputedStyle(at).backgroundColor) : [0, 0, 0, 0];
    if (alpha > 127) return red * 0.3 + green * 0.59 + blue * 0.11 < 110;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/**
 * Hide the picture that a saved notebook shows in place of the explorer, unless no kernel has ever answered: then the
 * explorer is one that was saved, too, and cannot show its other tabs.
 * @param {string} id
 * @param {Link} link
 */
export function hidePicture(id, link) {
  const style = document.createElement("style");
  const follow = () => {
    const isDead = link.heard === 0 && (link.mood === "busy" || link.mood === "lost");
    style.textContent = id && !isDead ? `[data-icestats-picture="${CSS.escape(id)}"] { display: none; }` : "";
  };
  follow();
  document.head.append(style);
  const leave = link.watch(follow);
  return () => {
    leave();
    style.remove();
  };
}
