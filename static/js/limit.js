// How long a message may be. A longer one is refused, and a much longer one would end the connection (MSG-12).
import { notice, over } from "./notice.js";
import { fill, words } from "./words.js";

const limit = Number(document.getElementById("composer")?.dataset.limit);
const figures = new Intl.NumberFormat(document.documentElement.lang);

/** Whether the server takes a text of this length. */
export const isWithin = (text) => charactersOf(text) <= limit;

/** Whether the server takes a text of this length; tells the person if not. */
export function fits(text) {
  const isShort = isWithin(text);
  if (isShort) over("limit");
  else notice(fill(words.tooLong, { count: figures.format(charactersOf(text)), limit: figures.format(limit) }), { about: "limit" });
  return isShort;
}

// The server counts characters, a string's length are UTF-16 units.
function charactersOf(text) {
  if (text.length <= limit) return text.length;
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}
