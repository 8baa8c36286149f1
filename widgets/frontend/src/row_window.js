// Which rows of a long table are seen, and where they are drawn.

// Browsers lay out no higher elements: of longer tables the scroll bar's place is a share.
const MOST_PIXELS = 12_000_000;

/** @typedef {{ row_count: number, row_height: number, fits: number }} Extent */

/** @param {Extent} extent */
export function spacePixels({ row_count, row_height }) {
  return Math.min(row_count * row_height, MOST_PIXELS);
}

/** @param {Extent} extent */
const isSqueezed = ({ row_count, row_height }) => row_count * row_height > MOST_PIXELS;

/** @param {Extent} extent */
const scrollRange = (extent) => Math.max(1, spacePixels(extent) - extent.fits * extent.row_height);

/** @param {Extent} extent */
const lastFirst = ({ row_count, fits }) => Math.max(0, row_count - fits);

/**
 * The rows that are seen.
 * @param {Extent} extent
 * @param {number} scrollTop
 * @returns {[number, number]} the first, and the one after the last
 */
export function seenRows(extent, scrollTop) {
  const { row_count, row_height, fits } = extent;
  const first = isSqueezed(extent)
    ? Math.round((scrollTop / scrollRange(extent)) * lastFirst(extent))
    : Math.floor(scrollTop / row_height);
  const clamped = Math.max(0, Math.min(first, row_count - 1));
  return [clamped, Math.min(row_count, clamped + fits + 1)];
}

/**
 * Where a row is drawn, in pixels.
 * @param {Extent} extent
 * @param {number} row
 * @param {number} first the first row that is seen
 * @param {number} scrollTop
 */
export function rowTop(extent, row, first, scrollTop) {
  return isSqueezed(extent) ? scrollTop + (row - first) * extent.row_height : row * extent.row_height;
}

/**
 * Where to scroll so that a row is seen; null if it is.
 * @param {Extent} extent
 * @param {number} row
 * @param {number} scrollTop
 */
export function scrollTo(extent, row, scrollTop) {
  const [first] = seenRows(extent, scrollTop);
  const { row_height, fits } = extent;
  const goal = row < first || row * row_height < scrollTop ? row : row >= first + fits ? row - fits + 1 : -1;
  if (goal < 0) return null;
  return isSqueezed(extent) ? (goal / Math.max(1, lastFirst(extent))) * scrollRange(extent) : goal * row_height;
}
