import "./page.js";

import assert from "node:assert/strict";
import { test } from "node:test";

import { standAlone } from "../src/figure_file.js";
import { parseSvg } from "../src/picture.js";
import { findPlot, fractions, nextMark } from "../src/plot_area.js";

const PLOT = { plot: "days", x: 40, y: 10, width: 200, height: 100 };

test("a drag is a share of its plot, whichever way it went, and ends at the plot's edge", () => {
  assert.deepEqual(fractions(PLOT, { x: 190, y: 60 }, { x: 90, y: 35 }, false), { plot: "days", x: [0.25, 0.75], y: [0.25, 0.5] });
  assert.deepEqual(fractions(PLOT, { x: 90, y: 35 }, { x: 900, y: -5 }, false), { plot: "days", x: [0.25, 1], y: [0, 0.25] });
  assert.deepEqual(fractions(PLOT, { x: 90, y: 35 }, { x: 140, y: 36 }, true), { plot: "days", x: [0.25, 0.5], y: [0, 1] });
});

test("a drag belongs to the plot that it begins in", () => {
  assert.equal(findPlot([PLOT, { ...PLOT, plot: "other", y: 200 }], { x: 50, y: 250 })?.plot, "other");
  assert.equal(findPlot([PLOT], { x: 10, y: 20 }), undefined);
});

test("an arrow key leads to the nearest mark in its direction, and stays where there is none", () => {
  // Two columns of three marks, drawn column by column.
  const boxes = [0, 1, 2, 3, 4, 5].map((at) => {
    const [left, top] = [20 * Math.floor(at / 3), 20 * (at % 3)];
    return { left, top, right: left + 16, bottom: top + 16 };
  });
  assert.equal(nextMark(boxes, 1, "ArrowDown"), 2);
  assert.equal(nextMark(boxes, 1, "ArrowRight"), 4);
  assert.equal(nextMark(boxes, 4, "ArrowLeft"), 1);
  assert.equal(nextMark(boxes, 2, "ArrowDown"), 2);
});

test("nothing in a figure runs, or is loaded from elsewhere", () => {
  const root = parseSvg(`<svg onload="alert(1)" viewBox="0 0 1 1"><use href="#here"/>
    <image href="https://example.org/x.png"/><a href="javascript:alert(1)"><rect onclick="alert(1)"/></a>
    <foreignObject><b>x</b></foreignObject><script>alert(1)</script></svg>`);
  assert.ok(root);
  assert.doesNotMatch(root.outerHTML, /alert|example|foreignObject|script/);
  assert.match(root.outerHTML, /#here/);
  assert.equal(parseSvg("no picture"), null);
});

test("a figure by itself has the page's colours, and its texts as they are, however long", () => {
  const place = document.createElement("div");
  place.style.setProperty("--line", "#123456");
  document.body.append(place);
  const text = `var(--line,${"x".repeat(200_000)}`;
  assert.equal(standAlone(`<svg><path fill="var(--line, rgb(1 2 3/4%))"/>${text}</svg>`, place), `<svg><rect width="100%" height="100%" fill="#ffffff"/><path fill="#123456"/>${text}</svg>`);
  place.remove();
});
