// Summaries of earlier messages (CTX-07). What the last one stands for is folded away above it; a button shows it, dimmed.
import { offer, on } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { notice } from "../ui/notice.js";
import { toast } from "../ui/toast.js";
import { insist } from "./insist.js";
import { canEdit, live } from "./session.js";

const list = document.getElementById("messages");
const log = document.getElementById("log");
let isOpen = false;

/** Folds what comes before the last summary that the model is sent. Call it when messages came, changed or went. */
function fold() {
  const last = [...list.querySelectorAll(":scope > .summary:not(.excluded)")].at(-1);
  if (!last && !list.querySelector(":scope > .summarized")) return;
  let isBefore = Boolean(last);
  for (const element of list.children) {
    if (element === last) isBefore = false;
    element.classList.toggle("summarized", isBefore);
  }
  log.classList.toggle("summary-folded", Boolean(last) && !isOpen);
  for (const button of list.querySelectorAll("[data-action=unfold-summary]"))
    button.setAttribute("aria-expanded", String(isOpen));
}

/** Shows a message that is folded away, for a user who goes to it. */
export function unfoldSummary(message) {
  if (!message?.matches(".summarized") || isOpen) return;
  isOpen = true;
  fold();
}

function toggle(button) {
  isOpen = !isOpen;
  const top = button.getBoundingClientRect().top;
  fold();
  log.scrollTop += button.getBoundingClientRect().top - top;
}

const compact = () => insist(() => live.request({ type: "compact" }), { label: words.stopAndCompact });

function undo(button) {
  const { id } = button.closest("article");
  const redo = { label: words.undo, run: () => insist(() => live.request({ type: "restore", id })) };
  return insist(
    async () => {
      await live.request({ type: "remove", id });
      toast(words.summaryRemoved, { action: redo });
    },
    { label: words.stopAndDo },
  );
}

function ended({ outcome, text }) {
  if (!text) return;
  if (outcome === "done") toast(text);
  else if (canEdit) notice(text, { about: "compact" });
}

export function connect() {
  new MutationObserver(fold).observe(list, { childList: true });
  live.addEventListener("frame", ({ detail }) => {
    if (["message", "context"].includes(detail.op)) requestAnimationFrame(() => setTimeout(fold));
  });
  on("unfold-summary", toggle);
  on("undo-summary", undo);
  on("compact", compact);
  live.addEventListener("frame", ({ detail }) => detail.op === "compacted" && ended(detail));
  offer({
    id: "compact",
    label: words.compact,
    words: words.compactWords,
    icon: "fold-vertical",
    slash: "compact",
    run: compact,
    can: () => canEdit,
  });
  fold();
}
