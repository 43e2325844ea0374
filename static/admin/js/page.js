// What all pages of the admin do: times in the viewer's zone, and menus that close as those of the page do.
import { localise, tellZone } from "../../js/ui/time.js";

const MENUS = "details:is(.filter, .row-menu)";

localise(document);
const { zone } = tellZone();
for (const place of document.querySelectorAll("[data-zone]")) place.textContent = zone.replaceAll("_", " ");

function close(menu) {
  if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
  menu.open = false;
}

addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector(`${MENUS}[open]`);
  if (menu) close(menu);
});
addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(`${MENUS}[open]`)) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener("focusin", (event) => {
  for (const menu of document.querySelectorAll(`${MENUS}[open]`)) if (!menu.contains(event.target)) menu.open = false;
});
