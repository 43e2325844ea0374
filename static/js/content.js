// What rendered Markdown leaves to the page: words in its language, footnotes, and code or tables taken elsewhere.
import { on } from "./actions.js";
import { confirm, copyWords } from "./clipboard.js";
import { late } from "./late.js";
import { leave } from "./scroll.js";

const SHOWN = ["caution", "code", "diagram", "important", "note", "preview", "tip", "warning"];
const KEPT_MS = 60_000;
let origin = null; // the reference from which the reader came to a footnote

for (const name of SHOWN) {
  const text = document.getElementById(`w-${name}`).textContent;
  document.documentElement.style.setProperty(`--w-${name}`, JSON.stringify(text));
}

on("footnote", (button) => {
  origin = button;
  go(partner(button, ".footnote-back"));
});
on("footnote-back", (button) => {
  const isOrigin = origin?.textContent === button.textContent && bodyOf(origin) === bodyOf(button);
  go(isOrigin ? origin : partner(button, ".footnote-ref"));
});
on("download-code", (button) => {
  const block = button.closest(".code");
  save(block.querySelector("pre").textContent, `snippet.${block.dataset.file ?? "txt"}`);
});
on("copy-csv", async (button) => {
  const rows = [...button.parentElement.querySelectorAll("tr")];
  const text = rows.map((row) => [...row.cells].map((cell) => quoted(cell.textContent.trim())).join(",")).join("\n");
  confirm(button, await copyWords(`${text}\n`));
});
on("preview", async (button) => (await late(() => import("./preview.js")))?.open(button));

const bodyOf = (element) => element.closest("[data-body]");

/** The footnote of a reference, or the first reference to a footnote: in the same message, with the same number. */
function partner(button, kind) {
  return [...(bodyOf(button)?.querySelectorAll(kind) ?? [])].find(({ textContent }) => textContent === button.textContent);
}

function go(target) {
  if (!target) return;
  leave();
  target.scrollIntoView({ block: "center" });
  target.focus({ preventScroll: true });
}

const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

function save(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
