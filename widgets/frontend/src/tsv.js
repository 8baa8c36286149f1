// Rows as a spreadsheet takes them.

/**
 * A cell of a table with tabs. What a spreadsheet would run as a formula is a text: it gets an apostrophe in front.
 * @param {string} text
 */
export function quote(text) {
  const plain = text.replace(/[\t\r\n]+/g, " ");
  return /^[=@]|^[+-](?![\d.,]+(?:[eE][+-]?\d+)?(?: ?[\p{L}%]+)?$)/u.test(plain.trimStart()) ? `'${plain}` : plain;
}

/** @param {string[][]} rows */
export function buildTsv(rows) {
  return rows.map((row) => row.map(quote).join("\t")).join("\n");
}
