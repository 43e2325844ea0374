// Agents that a sent text mentions, but that are not in the session: offers to add them (RUN-17).
import { ask, page } from "../messages/session.js";
import { fill, words } from "../ui/i18n.js";
import { toast } from "../ui/toast.js";
import { namesOfSession } from "./completion.js";

const SHOWN = 20; // seconds

/** Offers to add the agent that a sent text mentions, if it is not in the session. */
export async function offerAbsent(text) {
  const { absent = [] } = (await namesOfSession()) ?? {};
  const there = JSON.parse(page.dataset.agents || "[]").map(({ name }) => name);
  const agent = absent.find((each) => !there.includes(each.name) && isMentioned(each, text));
  if (!agent) return;
  const run = () => ask({ type: "add_agent", agent: agent.name });
  const action = { label: words.agentAdd, run };
  toast(fill(words.agentAbsent, { name: agent.title }), { action, seconds: SHOWN });
}

function isMentioned({ name, title }, text) {
  const written = [name, title].map((each) => each.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  return new RegExp(`(?<![A-Za-z0-9_.@])@(?:${written})(?![\\p{L}\\p{N}_-])`, "iu").test(text);
}
