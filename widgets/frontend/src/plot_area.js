// Where a drag lies in a plot, and which mark an arrow key leads to. Pure arithmetic of pixels.

/** @typedef {{ plot: string, x: number, y: number, width: number, height: number }} Plot   in the units of the svg */
/** @typedef {{ x: number, y: number }} Point */
/** @typedef {{ left: number, top: number, right: number, bottom: number }} Box */

const clamp = (/** @type {number} */ value) => Math.max(0, Math.min(1, value));
const round = (/** @type {number} */ value) => Math.round(value * 1e6) / 1e6;

/**
 * The plot that a point lies in.
 * @param {Plot[]} plots
 * @param {Point} point
 */
export function findPlot(plots, { x, y }) {
  return plots.find((plot) => x >= plot.x && x <= plot.x + plot.width && y >= plot.y && y <= plot.y + plot.height);
}

/**
 * What lies between two points, in fractions of the plot; y counts from the top.
 * @param {Plot} plot
 * @param {Point} one
 * @param {Point} other
 * @param {boolean} isFlat whether all of the height counts
 */
export function fractions(plot, one, other, isFlat) {
  const along = (/** @type {number} */ value, /** @type {number} */ start, /** @type {number} */ size) => round(clamp((value - start) / size));
  const x = [one.x, other.x].map((value) => along(value, plot.x, plot.width)).sort((a, b) => a - b);
  const y = [one.y, other.y].map((value) => along(value, plot.y, plot.height)).sort((a, b) => a - b);
  return { plot: plot.plot, x, y: isFlat ? [0, 1] : y };
}

const STEPS = /** @type {Record<string, [number, number]>} */ ({
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
});

/**
 * The nearest mark in the direction of a key: what lies straight ahead before what lies aside.
 * @param {Box[]} boxes
 * @param {number} from
 * @param {string} key
 * @returns {number} its place; where there is none, the one it came from
 */
export function nextMark(boxes, from, key) {
  const [right, down] = STEPS[key];
  const middle = (/** @type {Box} */ box) => ({ x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 });
  const start = middle(boxes[from]);
  let [best, least] = [from, Infinity];
  boxes.forEach((box, place) => {
    const { x, y } = middle(box);
    const ahead = right * (x - start.x) + down * (y - start.y);
    const aside = Math.abs(right ? y - start.y : x - start.x);
    const distance = ahead + 3 * aside;
    if (place !== from && ahead > 0.5 && distance < least) [best, least] = [place, distance];
  });
  return best;
}
