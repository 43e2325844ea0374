// Selecting several sessions, to archive or delete them together.
import { on } from "../ui/commands.js";
import { fill, words } from "../ui/i18n.js";
import { organise } from "./organise.js";

const rail = document.getElementById("rail");
const list = document.getElementById("rail-list");
const bar = document.getElementById("rail-bulk");
const chosen = new Set();
let last = "";

const rows = () => [...list.querySelectorAll(".rail-row")];
const isOn = () => rail.classList.contains("selecting");

/** Starts with one row. */
export function begin(row) {
  rail.classList.add("selecting");
  bar.hidden = false;
  choose([row], true);
  row.querySelector(".rail-check").focus();
}

export function end() {
  if (!isOn()) return;
  const focused = bar.contains(document.activeElement) || list.contains(document.activeElement);
  rail.classList.remove("selecting");
  bar.hidden = true;
  chosen.clear();
  draw();
  if (focused) (document.getElementById(`rail-link-${last}`) ?? list).focus();
}

function choose(some, wanted) {
  for (const { dataset } of some) wanted ? chosen.add(dataset.session) : chosen.delete(dataset.session);
  last = some.at(-1).dataset.session;
  draw();
}

/** With Shift, selects all rows from the one selected before. */
function toggled(row, withRange) {
  const all = rows();
  const [from, to] = [all.findIndex(({ dataset }) => dataset.session === last), all.indexOf(row)];
  const wanted = !chosen.has(row.dataset.session);
  const some = withRange && from >= 0 ? all.slice(Math.min(from, to), Math.max(from, to) + 1) : [row];
  choose(from > to && withRange ? some.reverse() : some, wanted);
}

function draw() {
  for (const row of rows()) {
    const isChosen = chosen.has(row.dataset.session);
    row.classList.toggle("chosen", isChosen);
    row.querySelector(".rail-check").checked = isChosen;
  }
  document.getElementById("rail-count").textContent = isOn() ? fill(words.selected, { count: chosen.size }) : "";
}

async function all(action) {
  const ids = [...chosen];
  end();
  if (ids.length) await organise(action, ids);
}

export function connect() {
  list.addEventListener("click", (event) => {
    const row = event.target.closest(".rail-row");
    if (!isOn() || !row || event.target.closest(".rail-dots")) return;
    if (!event.target.matches(".rail-check")) event.preventDefault(); // do not open the session
    toggled(row, event.shiftKey);
  });
  rail.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOn()) return;
    event.stopPropagation();
    end();
  });
  list.addEventListener("parley:listed", () => {
    const there = new Set(rows().map(({ dataset }) => dataset.session));
    for (const id of chosen) if (!there.has(id)) chosen.delete(id);
    draw();
  });
  on("bulk-archive", () => all(list.querySelector("#rail-back") ? "restore" : "archive"));
  on("bulk-delete", () => all("delete"));
  on("bulk-end", end);
}
