/** @import { Row } from "./protocol.d.ts" */

const AHEAD = 24;

/** Rows that have come, and those that have been asked for. Rows of an older number than the newest are never mixed in. */
export class RowStore {
  constructor() {
    this.number = -1;
    /** @type {Map<number, Row>} */
    this.rows = new Map();
    /** @type {Map<number, Row>} what was there before, to look at until the new rows come */
    this.before = new Map();
    this.row_count = 0;
    this.asked = "";
  }

  /**
   * Take rows in, unless newer ones are here.
   * @param {{ number: number, offset: number, row_count: number, rows: Row[] }} message
   * @returns {boolean} whether they were taken
   */
  take({ number, offset, row_count, rows }) {
    if (number < this.number) return false;
    if (number > this.number) {
      if (this.rows.size) this.before = this.rows;
      this.rows = new Map();
      this.number = number;
    }
    this.asked = "";
    this.row_count = row_count;
    rows.forEach((row, place) => this.rows.set(offset + place, row));
    return true;
  }

  /**
   * What to ask for so that rows are seen; null if they are here, or already asked for.
   * @param {number} first
   * @param {number} last the one after the last
   */
  missing(first, last) {
    let isHere = true;
    for (let row = first; row < last; row += 1) isHere &&= this.rows.has(row);
    const wanted = { offset: Math.max(0, first - AHEAD), count: last - Math.max(0, first - AHEAD) + AHEAD };
    const asked = `${wanted.offset} ${wanted.count} ${this.number}`;
    if (isHere || asked === this.asked) return null;
    this.asked = asked;
    return { ...wanted, number: this.number };
  }

  /** Nothing has come: what was asked for is asked for again. */
  forget() {
    this.asked = "";
  }
}
