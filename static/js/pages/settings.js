// The settings of a user and of a workspace, and other pages with panels and forms.
import * as signOut from "../sidebar/sign_out.js";
import { connectCopying } from "../ui/clipboard.js";
import { ready } from "../ui/commands.js";
import * as preferences from "../ui/preferences.js";
import * as push from "../ui/push.js";
import { localise } from "../ui/time.js";
import * as toasts from "../ui/toast.js";
import * as openingPrompts from "./opening_prompts.js";
import * as notifications from "./settings_notifications.js";

const at = (id) => document.getElementById(id);

for (const part of [preferences, push, signOut, toasts]) part.connect();
localise(document, "medium");
if (at("saved")) {
  for (const form of [at("preferences"), at("notify")]) connectPreferences(form, at("saved").dataset);
  notifications.connect();
}
connectSecrets(at("token-answer"), at("codes"));
openingPrompts.connect(document.querySelector(".prompt-icons"), at("id_prompts"));
// Later, because the browser's jump to the address's #section at the end of loading takes the focus.
addEventListener("load", () => setTimeout(() => document.querySelector("[aria-invalid=true]")?.focus()));
showSection();
for (const upload of document.querySelectorAll("form[data-at-once]"))
  upload.addEventListener("change", () => upload.requestSubmit());
guardUnsaved();
ready();

/** Lets the browser ask before a page with a changed long form is left. */
function guardUnsaved() {
  const changed = new Set();
  document.addEventListener("input", ({ target }) => target.form?.matches(".stacked-form") && changed.add(target.form));
  document.addEventListener("submit", ({ target }) => changed.delete(target));
  addEventListener("beforeunload", (event) => changed.size && event.preventDefault());
}

/** Applies a choice at once. One that could not be stored gives way to the stored one, unless the user has chosen again. */
function connectPreferences(form, said) {
  const stored = new Map([...form.elements].map(({ name }) => [name, valueOf(form, name)]));
  form.addEventListener("change", async ({ target: { name } }) => {
    if (name === "notify" && !(await notifications.mayChange())) return;
    const value = valueOf(form, name);
    showTheme(name, value);
    const problem = await preferences.keep({ [name]: value }, said.notSaved);
    if (!problem) stored.set(name, value);
    else if (valueOf(form, name) === value) {
      choose(form, name, stored.get(name));
      showTheme(name, stored.get(name));
    }
    if (!problem && name === "language") return location.reload(); // the page itself changes its language
    toasts.toast(problem || said.saved);
    if (!problem && name === "notify") await notifications.changed();
  });
}

function showTheme(name, value) {
  if (name === "theme") document.dispatchEvent(new CustomEvent("parley:theme", { detail: value }));
}

function valueOf(form, name) {
  return new FormData(form).get(name) ?? "no";
}

function choose(form, name, value) {
  for (const field of [...form.elements].filter((each) => each.name === name))
    if (["radio", "checkbox"].includes(field.type)) field.checked = field.value === value;
    else field.value = value;
}

/** A new API token and new recovery codes are shown once, with a button to copy them. */
function connectSecrets(token, codes) {
  if (token?.matches("input")) {
    token.select();
    connectCopying(at("copy-token"), token, () => token.value);
  }
  if (codes)
    connectCopying(at("copy-codes"), codes, () => [...codes.children].map((code) => code.textContent).join("\n"));
}

/** Marks the section in view in the navigation: the last one whose top has been passed. */
function showSection() {
  const links = [...document.querySelectorAll(".settings-nav a")];
  if (!links.length) return;
  let due = 0;
  const look = () => {
    due = 0;
    const isAtEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
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
