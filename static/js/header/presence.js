// Presence and typing (LIVE-05). All viewers get the same frames: the user's own entry is left out here.
import { live, page } from "../messages/session.js";
import { valueAt } from "../net/http.js";
import { on } from "../ui/commands.js";
import { make, parse, patchChildren } from "../ui/dom.js";
import { dress, know, strangers } from "../ui/faces.js";
import { fill, words } from "../ui/i18n.js";
import { openBox, place as placeBox } from "../ui/popover.js";

// The longest name in a sentence about one person, and about two, so that it fits a phone.
const LONGEST = [0, 30, 16];
const place = document.getElementById("presence");
const line = document.getElementById("typing");
const isMe = (id) => String(id) === page.dataset.viewerId;
let drawn = "";
let box = null;

/** Shows presence frames, and sends one when the user types. */
export function connect() {
  live.addEventListener("frame", ({ detail: frame }) => frame.op === "presence" && show(frame));
  live.addEventListener("state", ({ detail: { state } }) => {
    if (state !== "connected") say([]);
    if (state === "offline" || state === "closed") place.hidden = true;
  });
  document.addEventListener("parley:typing", () => live.request({ type: "typing" }).catch(() => {}));
  on("here", open);
}

function show({ html, typing }) {
  if (html !== drawn) draw(html);
  place.hidden = [...place.querySelectorAll("li [data-person]")].every((face) => isMe(face.dataset.person));
  say(typing.filter(({ id }) => !isMe(id)).map(({ name }) => name));
}

function draw(html) {
  drawn = html;
  patchChildren(place, parse(html));
  dress(place);
  if (strangers(place).length) meet();
  if (box?.isConnected) fillBox();
}

/** Fetches pictures of people who joined after the page was loaded. */
async function meet() {
  const list = await valueAt(`/sessions/${page.dataset.session}/people`);
  if (!list) return;
  const none = strangers(place).map((id) => [id, ""]);
  know(Object.fromEntries([...none, ...list.people.map(({ id, picture }) => [id, picture])]));
}

function say(names) {
  const sentence = [null, words.isTyping, words.areTyping][names.length] ?? words.manyTyping;
  const [name, other] = names.map((each) => isolated(each, LONGEST[names.length]));
  line.lastElementChild.textContent = names.length ? fill(sentence, { name, other }) : "";
  line.toggleAttribute("data-on", names.length > 0);
}

/** Returns a name for use in a sentence: shortened, and isolated from the direction of the text around it. */
function isolated(name, longest) {
  const letters = [...name];
  return `\u2068${letters.length > longest ? `${letters.slice(0, longest).join("").trimEnd()}…` : name}\u2069`;
}

function open(button) {
  box = openBox(button, { className: "here-box", label: words.hereNow });
  if (!box) return;
  fillBox();
  box.focus();
}

function fillBox() {
  const list = place.querySelector("ul").cloneNode(true);
  list.hidden = false;
  box.replaceChildren(make("h2", { textContent: words.hereNow }), list);
  dress(box);
  placeBox();
}
