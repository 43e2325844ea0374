// Pictures in messages open large on this page; a click with a key held opens them as any link.
import { on } from "./actions.js";
import { late } from "./late.js";

on("show-picture", async (link, event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  (await late(() => import("./lightbox.js")))?.show(link);
});
