// The settings of a user and of a workspace, and other pages with panels and forms.
import * as signOut from "../sidebar/sign_out.js";
import { connectCopyButton } from "../ui/clipboard.js";
import { reportReady } from "../ui/commands.js";
import { replaceRange } from "../ui/dom.js";
import * as preferences from "../ui/preferences.js";
import * as push from "../ui/push.js";
import * as renderedToasts from "../ui/rendered_toasts.js";
import * as submitted from "../ui/submitted.js";
import { localizeTimes } from "../ui/time.js";
import * as toasts from "../ui/toast.js";
import * as notifications from "./settings_notifications.js";

const byId = (id) => document.getElementById(id);

for (const part of [preferences, push, signOut, toasts, renderedToasts]) part.connect();
localizeTimes(document, "medium");
if (byId("saved")) {
  for (const form of [byId("preferences"), byId("notify")]) connectPreferences(form, byId("saved").dataset);
  notifications.connect();
}
connectCopyButtons(byId("token-answer"), byId("codes"));
connectPromptIcons(document.querySelector(".prompt-icons"), byId("id_prompts"));
// Later, because the browser moves the focus to the #section of the address at the end of loading.
addEventListener("load", () => setTimeout(focusProblem));
trackSection();
for (const upload of document.querySelectorAll("form[data-at-once]"))
  upload.addEventListener("change", () => upload.requestSubmit());
guardUnsaved();
submitted.connect(byId("main").dataset.viewer, () => toasts.showToast(byId("main").dataset.restored));
reportReady();

/** Moves the focus to the field that was refused, or to the reason if that names no field. */
function focusProblem() {
  const reason = document.querySelector(".errors[role=alert]");
  if (reason) reason.tabIndex = -1;
  (document.querySelector("[aria-invalid=true]") ?? reason)?.focus();
}

/** Lets the browser ask before the user leaves a page with a changed long form. */
function guardUnsaved() {
  const changed = new Set();
  document.addEventListener("input", ({ target }) => target.form?.matches(".stacked-form") && changed.add(target.form));
  document.addEventListener("submit", ({ target }) => changed.delete(target));
  addEventListener("beforeunload", (event) => changed.size && event.preventDefault());
}

/** Applies choices immediately. If a choice cannot be stored, restores the stored one, unless the user chose again. */
function connectPreferences(form, texts) {
  const stored = new Map([...form.elements].map(({ name }) => [name, valueOf(form, name)]));
  form.addEventListener("change", async ({ target: { name } }) => {
    if (name === "notify" && !(await notifications.allowChange())) return;
    const value = valueOf(form, name);
    showTheme(name, value);
    const problem = await preferences.savePreferences({ [name]: value }, texts.notSaved);
    if (!problem) stored.set(name, value);
    else if (valueOf(form, name) === value) {
      setField(form, name, stored.get(name));
      showTheme(name, stored.get(name));
    }
    if (!problem && name === "language") return location.reload(); // the page itself changes its language
    toasts.showToast(problem || texts.saved);
    if (!problem && name === "notify") await notifications.applyChange();
  });
}

function showTheme(name, value) {
  if (name === "theme") document.dispatchEvent(new CustomEvent("parley:theme", { detail: value }));
}

function valueOf(form, name) {
  return new FormData(form).get(name) ?? "no";
}

function setField(form, name, value) {
  for (const field of [...form.elements].filter((each) => each.name === name))
    if (["radio", "checkbox"].includes(field.type)) field.checked = field.value === value;
    else field.value = value;
}

/** Connects the buttons to copy a new API token and new recovery codes, which are shown once. */
function connectCopyButtons(token, codes) {
  if (token?.matches("input")) {
    token.select();
    connectCopyButton(byId("copy-token"), token, () => token.value);
  }
  if (codes)
    connectCopyButton(byId("copy-codes"), codes, () => [...codes.children].map((code) => code.textContent).join("\n"));
}

/** Marks the section in view in the navigation: the last section whose top the user has scrolled past. */
function trackSection() {
  const links = [...document.querySelectorAll(".settings-nav a")];
  if (!links.length) return;
  let due = 0;
  const update = () => {
    due = 0;
    const isAtEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const passed = links.filter(({ hash }) => document.querySelector(hash).getBoundingClientRect().top < 120);
    const present = (isAtEnd && scrollY > 0 ? links : passed).at(-1) ?? links[0];
    for (const link of links) {
      if (link !== present) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetWidth / 3;
      }
    }
  };
  addEventListener("scroll", () => (due ||= requestAnimationFrame(update)), { passive: true });
  update();
}

/** Connects the icons below the field for opening prompts. A click writes an icon's name into the caret's line. */
function connectPromptIcons(icons, field) {
  if (!icons || !field) return;
  icons.hidden = false; // hidden without scripts, where users type the names
  icons.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button) setIcon(field, button.value, icons.dataset.heading);
  });
}

/** Gives the caret's line an icon. Replaces its icon, or adds one and a heading that the user can overwrite. */
function setIcon(field, icon, heading) {
  const text = field.value;
  const start = text.slice(0, field.selectionStart).lastIndexOf("\n") + 1;
  const end = text.indexOf("\n", start);
  const line = text.slice(start, end < 0 ? undefined : end);
  const parts = line.split(" | ");
  if (parts.length > 2) return replaceRange(field, icon, start, start + parts[0].length);
  replaceRange(field, `${icon} | ${heading} | `, start, start);
  const from = start + icon.length + 3;
  field.setSelectionRange(from, from + heading.length);
}
