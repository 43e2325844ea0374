// What the browser's tab says: how much is unread, whose title it is, and by its icon how things are.

const page = document.getElementById("main");
const icon = document.getElementById("favicon");
const now = { unread: 0, working: false, offline: false };

/** Takes what has changed ({unread}, {working}, {offline}) and shows it; without anything, the title anew. */
export function showInTab(changes = {}) {
  Object.assign(now, changes);
  const title = page.querySelector("[data-part=title]").textContent.trim();
  document.title = `${now.unread ? `(${now.unread}) ` : ""}${title} · Parley`;
  const address = icon.href.replace(/favicon[\w-]*\.svg$/, `favicon${state()}.svg`);
  if (icon.href !== address) icon.href = address;
}

/** The one that matters most, as the end of an icon's name. */
function state() {
  if (now.offline) return "-offline";
  if (now.working) return "-working";
  return now.unread ? "-unread" : "";
}
