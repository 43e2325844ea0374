// The agent's behavior: which messages it answers, and whether it uses tools. Changed by a menu and by commands.
import { isGuest, live, page, sendCommand } from "../messages/session.js";
import { addCommand, onAction } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { openMenu } from "../ui/popover.js";
import { showToast } from "../ui/toast.js";

// The agent answers all messages, or only those that mention it.

/** Returns whether the agent answers "all" messages, or only "mentions". */
export const repliesTo = (which) => page.dataset.replies === which;
const setReplies = (which) => sendCommand({ type: "configure", replies: which });
const replyLabels = () => ({ all: words.replyToAll, mentions: words.replyToMentions });

let hideRepliesChange = () => {};

/**
 * Shows that the server has changed which messages the agent answers, because people have joined or left. Only the
 * latest change is shown.
 */
function showRepliesChange({ detail: now }) {
  hideRepliesChange();
  const action = now === "all" || isGuest ? null : { label: words.replyToAll, run: () => setReplies("all") };
  hideRepliesChange = showToast(now === "all" ? words.nowRepliesToAll : words.nowRepliesToMentions, { action });
}

// The mode of the session: with tools, without, or for a run that no one watches (MSG-09).

const MODE_ICONS = { agent: "wrench", chat: "message-square", run: "clock" };
const modeLabels = () => ({ agent: words.modeAgent, chat: words.modeChat, run: words.modeRun });
const setMode = (mode) => sendCommand({ type: "configure", mode });

function openBehaviorMenu() {
  const answers = Object.entries(replyLabels()).map(([which, label]) => ({
    label,
    checked: repliesTo(which),
    run: () => setReplies(which),
  }));
  const tools = Object.entries(modeLabels()).map(([mode, label]) => ({
    label,
    checked: page.dataset.mode === mode,
    run: () => setMode(mode),
  }));
  openMenu(document.getElementById("more"), [answers, tools], {
    label: words.behavior,
    headings: [words.behaviorReplies, words.behaviorTools],
  });
}

function addChoiceCommands() {
  for (const [which, label] of Object.entries(replyLabels())) {
    const can = () => !repliesTo(which);
    addCommand({ id: `reply-to-${which}`, label, icon: "message-square", run: () => setReplies(which), can });
  }
  for (const [mode, label] of Object.entries(modeLabels())) {
    const can = () => page.dataset.mode !== mode;
    const slash = `mode-${mode}`;
    addCommand({
      id: slash,
      label,
      keywords: words.modeWords,
      icon: MODE_ICONS[mode],
      slash,
      run: () => setMode(mode),
      can,
    });
  }
}

export function connect() {
  page.addEventListener("parley:replies", showRepliesChange);
  // A user who is removed gets the change that their removal causes, but no longer takes part in the session.
  live.addEventListener("state", ({ detail }) => detail.state === "closed" && hideRepliesChange());
  if (isGuest) return;
  onAction("reply-to-all", () => setReplies("all"));
  onAction("mode-agent", () => setMode("agent"));
  addCommand({ id: "behavior", label: words.behavior, icon: "bot", run: openBehaviorMenu });
  addChoiceCommands();
}
