// How the agent of the session behaves: which messages it answers, and with tools or without. One menu has the choices.
import { ask, isGuest, page } from "../messages/session.js";
import { offer, on } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { openMenu } from "../ui/popover.js";
import { toast } from "../ui/toast.js";

// All messages, or those that mention it.

/** Whether the agent answers "all" messages, or only "mentions". */
export const repliesTo = (which) => page.dataset.replies === which;
const reply = (which) => ask({ type: "configure", replies: which });
const replies = () => ({ all: words.replyToAll, mentions: words.replyToMentions });

/** Shows that the number of people has changed which messages the agent answers, with the way back. */
function tellReplies({ detail: now }) {
  const action = { label: words.replyToAll, run: () => reply("all") };
  if (now === "all") toast(words.nowRepliesToAll);
  else toast(words.nowRepliesToMentions, { action: isGuest ? null : action });
}

// The mode of the session: with tools, without, or for a run that no one watches (MSG-09).

const MODE_ICONS = { agent: "wrench", chat: "message-square", run: "clock" };
const modes = () => ({ agent: words.modeAgent, chat: words.modeChat, run: words.modeRun });
const setMode = (mode) => ask({ type: "configure", mode });

function openChoices() {
  const answers = Object.entries(replies()).map(([which, label]) => ({
    label,
    checked: repliesTo(which),
    run: () => reply(which),
  }));
  const tools = Object.entries(modes()).map(([mode, label]) => ({
    label,
    checked: page.dataset.mode === mode,
    run: () => setMode(mode),
  }));
  openMenu(document.getElementById("more"), [answers, tools], {
    label: words.behavior,
    headings: [words.behaviorReplies, words.behaviorTools],
  });
}

function offerChoices() {
  for (const [which, label] of Object.entries(replies())) {
    const can = () => !repliesTo(which);
    offer({ id: `reply-to-${which}`, label, icon: "message-square", run: () => reply(which), can });
  }
  for (const [mode, label] of Object.entries(modes())) {
    const can = () => page.dataset.mode !== mode;
    const slash = `mode-${mode}`;
    offer({ id: slash, label, words: words.modeWords, icon: MODE_ICONS[mode], slash, run: () => setMode(mode), can });
  }
}

export function connect() {
  page.addEventListener("parley:replies", tellReplies);
  if (isGuest) return;
  on("reply-to-all", () => reply("all"));
  on("mode-agent", () => setMode("agent"));
  offer({ id: "behavior", label: words.behavior, icon: "bot", run: openChoices });
  offerChoices();
}
