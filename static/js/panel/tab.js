// A tab of the panel whose content the server renders: it is fetched again after changes.
import { textAt } from "../net/http.js";
import { words } from "../ui/i18n.js";

const SOON = 400;
// Long sessions and large folders take a while: wait this share of the time between requests.
const REST = 4;

/**
 * Returns `refresh`, which fetches the content, and `stir`, which does so soon after one of the frames in `stirs`, once
 * for several of them. `query` returns the parameters of the address, and `draw` shows the HTML.
 */
export function tab({ body, address, query, stirs, draw }) {
  let asked = 0;
  let due = 0;
  let took = 0;

  async function refresh() {
    clearTimeout(due);
    due = 0;
    const mine = ++asked;
    const began = performance.now();
    const html = await textAt(`${address}?${new URLSearchParams(query())}`);
    if (mine !== asked) return;
    took = performance.now() - began;
    const hadFocus = body.contains(document.activeElement);
    if (html !== null) draw(html);
    else if (!body.querySelector("section")) body.textContent = words.panelLost;
    if (hadFocus && document.activeElement === document.body) body.closest("aside").focus({ preventScroll: true });
  }

  function stir(op) {
    if (stirs.includes(op) && !due) due = setTimeout(refresh, Math.max(SOON, REST * took));
  }

  return { refresh, stir };
}
