// The way to the palette: its key and its buttons. The palette itself comes when it is first asked for.
import { on } from "./actions.js";
import { offer } from "./deeds.js";
import { shown, withControl } from "./keyboard.js";
import { late } from "./late.js";
import { words } from "./words.js";

async function search() {
  (await late(() => import("./palette.js")))?.toggle();
}

export function start() {
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
