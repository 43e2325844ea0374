// Offers to add an agent that a sent text mentions if it is not in the session (RUN-17).
import { page, sendCommand } from "../messages/session.js";
import { format, words } from "../ui/i18n.js";
import { showToast } from "../ui/toast.js";
import { fetchNames } from "./mentions.js";

const TOAST_SECONDS = 20; // seconds

/** Shows a toast that offers to add the first such agent. */
export async function offerAbsentAgent(text) {
  const { absent = [] } = (await fetchNames()) ?? {};
  const present = JSON.parse(page.dataset.agents || "[]").map(({ name }) => name);
  const agent = absent.find((each) => !present.includes(each.name) && isMentioned(each, text));
  if (!agent) return;
  const run = () => sendCommand({ type: "add_agent", agent: agent.name });
  const action = { label: words.agentAdd, run };
  showToast(format(words.agentAbsent, { name: agent.title }), { action, seconds: TOAST_SECONDS });
}

function isMentioned({ name, title }, text) {
  const pattern = [name, title].map((each) => each.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  return new RegExp(`(?<![A-Za-z0-9_.@])@(?:${pattern})(?![\\p{L}\\p{N}_-])`, "iu").test(text);
}
