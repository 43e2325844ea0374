// Mentions: "@" and a name completes the agents, or "agent" if there is only one, and the people of the session.
import { page, sendCommand } from "../messages/session.js";
import { fetchJson } from "../net/http.js";
import { createElement } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { showToast } from "../ui/toast.js";

const CACHE_MS = 60_000;
let cachedNames = null; // a promise
let fetchedAt = 0;

/** Resolves to the suggestions for a query. */
export async function findMentions(query) {
  const agentsInSession = JSON.parse(page.dataset.agents || "[]");
  const takenNames = agentsInSession.length
    ? (await peopleOfSession()).flatMap(({ name, username }) => [name, username])
    : [];
  const agents = agentsInSession.map((each) => {
    const mention = mentionText(each, agentsInSession, takenNames); // inserted after the "@"
    return { label: each.title, detail: each.name, mention, icon: each.icon || "bot" };
  });
  const agent = { label: "agent", detail: page.dataset.agent, icon: "bot" };
  const several = agents.filter(({ label, detail }) => matchesQuery({ name: label, username: detail }, query));
  if (agents.length) return [...several, ...(await matchingPeople(query))];
  const people = await matchingPeople(query);
  return matchesQuery({ name: agent.label, username: agent.detail }, query) ? [agent, ...people] : people;
}

/**
 * Returns the text that mentions an agent after an "@". It is the agent's title, unless another agent or a user has the
 * same name, or the server would not recognize the whole title. Then it is the agent's name, which is unique but can
 * end in random letters.
 */
function mentionText({ name, title }, agentsInSession, people) {
  const otherNames = agentsInSession.filter((each) => each.name !== name).flatMap((each) => [each.name, each.title]);
  const isTaken = ["agent", ...otherNames, ...people].some((each) => each.toLowerCase() === title.toLowerCase());
  return !isTaken && /^[\p{L}\p{N}](?:[\p{L}\p{N} ._-]*[\p{L}\p{N}])?$/u.test(title) ? title : name;
}

/** Resolves to suggestions of the people who match the query, other than the user. */
async function matchingPeople(query) {
  const otherPeople = (await peopleOfSession()).filter(({ id }) => String(id) !== page.dataset.viewerId);
  return otherPeople.filter((person) => matchesQuery(person, query)).map(createSuggestion);
}

function matchesQuery({ name, username }, query) {
  if (!query) return true;
  return [name, username, ...name.split(/\s+/)].some((word) => word.toLowerCase().startsWith(query));
}

function createSuggestion({ id, name, username, initials, color }) {
  const face = createElement("span", {
    className: `face small ${color}`,
    data: { person: id },
    ariaHidden: "true",
    textContent: initials,
  });
  return { label: name, detail: username, face };
}

const peopleOfSession = async () => (await fetchNames())?.people ?? [];

/** Resolves to {people, absent}: the people of the session and the agents that can be added. Cached for a minute. */
function fetchNames() {
  if (Date.now() - fetchedAt < CACHE_MS) return cachedNames;
  fetchedAt = Date.now();
  cachedNames = fetchJson(`/sessions/${page.dataset.session}/people`);
  cachedNames.then((names) => names ?? (fetchedAt = 0)); // after a failure the next call tries again
  return cachedNames;
}

// Offers to add an agent that a sent text mentions if it is not in the session (RUN-17).

const TOAST_SECONDS = 20;

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
