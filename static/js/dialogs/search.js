// The key and buttons of the palette, which is loaded on first use.
import { offer, on, shown, withControl } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { late } from "../ui/late.js";

async function search() {
  (await late(() => import("./palette.js")))?.toggle();
}

export function connect() {
  on("search", search);
  const keys = document.querySelector(".rail-action kbd");
  keys.textContent = shown(keys.textContent);
  offer({ id: "search", label: words.search, icon: "search", keys: "Ctrl+K", slash: "search", run: search });
  addEventListener("keydown", (event) => {
    if (!withControl(event)) return;
    const key = event.key.toLowerCase();
    if (key === "k" && !event.shiftKey) search();
    else if (key === "o" && event.shiftKey) document.getElementById("rail-new")?.click();
    else return;
    event.preventDefault();
  });
}
