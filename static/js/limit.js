// How long a message may be. A longer one is refused, and a much longer one would end the connection (MSG-12).
import { notice } from "./notice.js";

const limit = Number(document.getElementById("composer")?.dataset.limit);
const words = document.getElementById("words").dataset;
const figures = new Intl.NumberFormat(document.documentElement.lang);

/** Whether the server takes a text of this length; tells the person if not. */
export function fits(text) {
  const count = charactersOf(text);
  if (count <= limit) return true;
  notice(words.tooLong.replace("{count}", figures.format(count)).replace("{limit}", figures.format(limit)));
  return false;
}

// The server counts characters, a string's length are UTF-16 units.
function charactersOf(text) {
  if (text.length <= limit) return text.length;
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}
