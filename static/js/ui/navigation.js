// Leaving the page by a link. While the server can't be reached, the page stays, because the browser's error page would
// replace what the user is reading.
import { isConnected, isReachable } from "../net/socket.js";
import { words } from "./i18n.js";
import { showToast } from "./toast.js";

/** Goes to another page of Parley, or shows a toast if the server cannot be reached. */
export const navigate = (address) => leave(() => location.assign(address));

/** Reloads the page, or shows a toast if the server cannot be reached. */
export const reload = () => leave(() => location.reload());

async function leave(go) {
  if (await isReachable()) go();
  else showToast(words.cannotLeave);
}

/** Returns whether a click leaves this page for another page of Parley. Downloads and new tabs do not. */
function isNavigation(event, link) {
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!isPlain || event.defaultPrevented || !link || link.target || link.hasAttribute("download")) return false;
  const isHere = link.pathname === location.pathname && link.search === location.search && link.hash;
  return link.origin === location.origin && !isHere;
}

export function connect() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!isNavigation(event, link) || isConnected()) return;
    event.preventDefault();
    navigate(link.href);
  });
}
