// Long names are cut in the middle: what tells them apart is at the end.
const [LEAST, SHORTEST_START] = [16, 5];
const [SHORTEST_TAIL, LONGEST_TAIL, LONGEST_OF_LONG] = [10, 16, 20];
const LONG = 40;

/**
 * The part that may be cut at its end, and the end that stays: whole words of it, where they are short enough.
 * @param {string} text
 * @returns {[string, string]}
 */
export function splitMiddle(text) {
  const signs = [...text];
  // Of a time the beginning tells most.
  if (signs.length < LEAST || /^\d{4}-\d\d-\d\d/.test(text)) return [text, ""];
  const most = Math.min(signs.length > LONG ? LONGEST_OF_LONG : LONGEST_TAIL, signs.length - SHORTEST_START);
  let tail = SHORTEST_TAIL;
  for (let length = SHORTEST_TAIL; length <= most; length += 1) {
    if (/[\s._/=-]/.test(signs[signs.length - length - 1])) tail = length;
  }
  return [signs.slice(0, -tail).join(""), signs.slice(-tail).join("")];
}
