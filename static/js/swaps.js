// What htmx asks for and does not get: it is told, for nothing else on the page would change.
import { toast } from "./toast.js";
import { words } from "./words.js";

const EXPLAINED = [401, 422]; // leads to signing in; says by itself what was refused

document.addEventListener("htmx:response:error", ({ detail: { ctx } }) => EXPLAINED.includes(ctx.response.status) || failed(ctx));
document.addEventListener("htmx:error", ({ detail: { ctx } }) => ctx && failed(ctx));

function failed({ sourceElement, target, request, response, text }) {
  if (sourceElement.getAttribute("hx-trigger") === "refresh") return; // nobody asked, and it will ask again
  if (response?.status === 429 && text) toast(text);
  else if (response?.status === 403) toast(words.tooOld);
  else toast(request.method.toUpperCase() === "GET" ? words.notLoaded : words.notDone);
  target.querySelector("[data-loading]")?.replaceWith(words.panelLost);
}
