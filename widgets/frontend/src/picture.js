// SVG that Python's canvas has drawn. It has escaped every text; what could run or load is taken out here once more.
import { html } from "htm/preact";
import { useLayoutEffect, useRef } from "preact/hooks";

const FORBIDDEN = "script, foreignObject, iframe, object, embed, animate, set, use[href]:not([href^='#'])";

/**
 * @param {string} svg
 * @returns {SVGSVGElement | null}
 */
export function parseSvg(svg) {
  const template = document.createElement("template");
  template.innerHTML = svg;
  const root = /** @type {SVGSVGElement | null} */ (template.content.querySelector("svg"));
  if (!root) return null;
  // What it is called is said by what it stands in; marks in it can be reached one by one.
  root.setAttribute("role", "none");
  for (const element of root.querySelectorAll(FORBIDDEN)) element.remove();
  for (const element of [root, ...root.querySelectorAll("*")]) {
    for (const { name, value } of [...element.attributes]) {
      if (/^on/i.test(name) || (/href$/i.test(name) && !value.startsWith("#"))) element.removeAttribute(name);
    }
  }
  return root;
}

/**
 * A small picture in a cell.
 * @param {{ svg: string, label: string }} props
 */
export function Picture({ svg, label }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    const root = parseSvg(svg);
    box.current?.replaceChildren(...(root ? [root] : []));
  }, [svg]);
  return html`<span ref=${box} class="icestats-picture" role="img" aria-label=${label}></span>`;
}
