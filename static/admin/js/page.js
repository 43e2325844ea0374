// All pages of the admin: shows times in the user's time zone, and closes open menus on Escape and presses outside.
import { localizeTimes, storeTimeZone } from "../../js/ui/time.js";

const MENUS = "details:is(.filter, .row-menu)";

localizeTimes(document);
const { zone } = storeTimeZone();
for (const place of document.querySelectorAll("[data-zone]")) place.textContent = zone.replaceAll("_", " ");

function closeMenu(menu) {
  if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
  menu.open = false;
}

addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector(`${MENUS}[open]`);
  if (menu) closeMenu(menu);
});
addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(`${MENUS}[open]`)) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener("focusin", (event) => {
  for (const menu of document.querySelectorAll(`${MENUS}[open]`)) if (!menu.contains(event.target)) menu.open = false;
});
