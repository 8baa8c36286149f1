// A figure as a file: the SVG as Python has drawn it with the page's colours, or a picture of that.
import { fileName, save } from "./saving.js";

const SCALE = 2;
const VARIABLE = /var\((--[\w-]+)(?:,[^()]*(?:\([^()]*\)[^()]*)*)?\)/g;

/**
 * The svg by itself: what the page's theme says stands in it.
 * @param {string} svg
 * @param {Element} place
 */
export function standAlone(svg, place) {
  const style = getComputedStyle(place);
  const whole = svg.replace(VARIABLE, (text, name) => style.getPropertyValue(name).trim() || text);
  const back = style.getPropertyValue("--icestats-back").trim() || "#ffffff";
  return whole.replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${back}"/>`);
}

/**
 * @param {string} svg
 * @param {Element} place
 * @param {string | undefined} name
 */
export function saveSvg(svg, place, name) {
  save(fileName(name, "svg"), new Blob([standAlone(svg, place)], { type: "image/svg+xml" }));
}

/**
 * @param {string} svg
 * @param {Element} place
 * @param {string | undefined} name
 */
export async function savePng(svg, place, name) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standAlone(svg, place))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width * SCALE, image.height * SCALE];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && save(fileName(name, "png"), blob));
}
