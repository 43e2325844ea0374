// The settings page: what is chosen holds at once.
import * as signOut from "../sidebar/sign_out.js";
import { ready } from "../ui/commands.js";
import { connectCopying } from "../ui/copy_text.js";
import * as preferences from "../ui/preferences.js";
import { localise } from "../ui/time.js";
import * as toasts from "../ui/toast.js";

// A new API token: it is shown once, copied by one step, and not made again when the page is loaded again.

const field = document.querySelector("input#token-answer");

if (field) {
  field.select();
  connectCopying(document.getElementById("copy-token"), field, () => field.value);
}

const form = document.getElementById("preferences");
const said = document.getElementById("saved").dataset;
const root = document.documentElement;

for (const part of [preferences, signOut, toasts]) part.connect();

form.addEventListener("change", async ({ target }) => {
  if (target.name === "notify" && target.checked && !(await allowed(target))) return;
  const value = target.type === "checkbox" && !target.checked ? "no" : target.value;
  if (target.name === "theme") document.dispatchEvent(new CustomEvent("parley:theme", { detail: value }));
  const problem = await preferences.keep({ [target.name]: value }, said.notSaved);
  if (!problem && target.name === "language") return location.reload(); // the page itself speaks it
  toasts.toast(problem || said.saved);
});

localise(document);
// Later: going to the address's #section, which the browser does at the end of loading, takes the focus away.
addEventListener("load", () => setTimeout(() => document.querySelector("[aria-invalid=true]")?.focus()));
showSection();

for (const upload of document.querySelectorAll("form[data-at-once]"))
  upload.addEventListener("change", () => upload.requestSubmit());

ready();

/** The browser is asked at the moment when somebody wants it, and its no is told. */
async function allowed(box) {
  const answer = "Notification" in window ? await Notification.requestPermission() : "denied";
  box.checked = answer === "granted";
  document.getElementById("notify-refused").hidden = box.checked;
  return box.checked;
}

/** Marks in the navigation the section that is being read: the last one that has begun at its top. */
function showSection() {
  const links = [...document.querySelectorAll(".settings-nav a")];
  let due = 0;
  const look = () => {
    due = 0;
    const isAtEnd = scrollY + innerHeight >= root.scrollHeight - 2;
    const begun = links.filter(({ hash }) => document.querySelector(hash).getBoundingClientRect().top < 120);
    const present = (isAtEnd && scrollY > 0 ? links : begun).at(-1) ?? links[0];
    for (const link of links) {
      if (link !== present) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetWidth / 3;
      }
    }
  };
  addEventListener("scroll", () => (due ||= requestAnimationFrame(look)), { passive: true });
  look();
}
