// A tab of the panel whose content is rendered by the server and fetched again after changes.
import { fetchText } from "../net/http.js";
import { createLoadError } from "../ui/loading.js";

const MIN_DELAY_MS = 400;
// Long sessions and large folders take a while, so the pause between requests is this many times the last duration.
const PAUSE_FACTOR = 4;
// The longest pause, because one response may be late for another reason, such as a restart of the server.
const MAX_DELAY_MS = 8000;

/**
 * Returns `refresh`, which fetches the content immediately, and `refreshAfter(op)`, which fetches it soon if `op` is in
 * `frames`, once for several calls. `query` returns the parameters of the address, and `draw` shows the HTML.
 */
export function createTab({ body, address, query, frames, draw }) {
  let shownQuery = null;
  let lastRequest = 0;
  let timer = 0;
  let duration = 0;

  async function refresh() {
    clearTimeout(timer);
    timer = 0;
    const number = ++lastRequest;
    const began = performance.now();
    const wanted = new URLSearchParams(query()).toString();
    const html = await fetchText(`${address}?${wanted}`);
    if (number !== lastRequest) return;
    duration = performance.now() - began;
    const hadFocus = body.contains(document.activeElement);
    // After a failed update, the content stays and is fetched again, unless the user wants to see other content.
    if (html !== null || wanted !== shownQuery) show(html, wanted);
    else timer = setTimeout(retry, MAX_DELAY_MS);
    if (hadFocus && document.activeElement === document.body) body.closest("aside").focus({ preventScroll: true });
  }

  function show(html, wanted) {
    if (html === null) body.replaceChildren(createLoadError(refresh));
    else draw(html);
    shownQuery = html === null ? null : wanted;
  }

  function retry() {
    timer = 0;
    if (body.checkVisibility()) refresh();
  }

  function refreshAfter(op) {
    if (!frames.includes(op) || timer) return;
    timer = setTimeout(refresh, Math.min(Math.max(MIN_DELAY_MS, PAUSE_FACTOR * duration), MAX_DELAY_MS));
  }

  return { refresh, refreshAfter };
}
