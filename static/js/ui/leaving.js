// Leaving the page by a link: not while the server can't be reached, because the browser's error page would take the place of
// what the user is reading.
import { isReachable, isSurelyReachable } from "../net/socket.js";
import { words } from "./i18n.js";
import { toast } from "./toast.js";

/** Goes to another page of Parley, or says that there is no connection. */
export async function go(address) {
  if (await isReachable()) location.assign(address);
  else toast(words.cannotLeave);
}

/** Whether a click lets the browser leave the page for another one of Parley. Links to files, and new tabs, do not. */
function leaves(event, link) {
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!isPlain || event.defaultPrevented || !link || link.target || link.hasAttribute("download")) return false;
  const isHere = link.pathname === location.pathname && link.search === location.search && link.hash;
  return link.origin === location.origin && !isHere;
}

export function connect() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!leaves(event, link) || isSurelyReachable()) return;
    event.preventDefault();
    go(link.href);
  });
}
