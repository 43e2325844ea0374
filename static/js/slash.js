// Commands: what a message that begins with "/" does instead of being sent.
import { named, offered } from "./deeds.js";
import { write } from "./field.js";
import { notice } from "./notice.js";
import { fill, words } from "./words.js";

/** Suggests the commands, then what one of them may be given. */
export const source = {
  at(text, caret) {
    const found = caret === text.length && /^\/(?:(\S+) +)?([^\n]*)$/.exec(text);
    if (!found || (!found[1] && /[\s/]/.test(found[2]))) return null;
    return { from: 0, query: { name: found[1] ?? "", words: found[2].toLowerCase() } };
  },
  waits: ({ name, words: written }) => !name && !written, // a stray Enter must not do whatever comes first
  find: ({ name, words: written }) => (name ? choices(name, written) : commands(written)),
  take(item, _range, key) {
    if (item.argument !== undefined) obey(item.deed, item.argument);
    else if (key === "Tab" || item.deed.choices) write(`/${item.deed.slash} `);
    else obey(item.deed, "");
  },
};

/** Does what a text asks for if it is a command; true when it is one, whatever came of it. */
export function commanded(text) {
  const [, name, argument = ""] = /^\/(\S+)(?: +([^\n]*))?$/.exec(text.trimEnd()) ?? [];
  const deed = name && named(name.toLowerCase());
  if (deed) obey(deed, argument, text);
  return Boolean(deed);
}

/** A text as it is to be sent: a second slash keeps what begins like a command from being one. */
export function said(text) {
  const [, name] = /^\/\/(\S+)/.exec(text) ?? [];
  return name && named(name.toLowerCase()) ? text.slice(1) : text;
}

async function obey(deed, argument, text = "") {
  if (!deed.can()) return notice(fill(words.notNow, { command: `/${deed.slash}` }));
  write("");
  // What was written comes back when nothing could be made of it.
  if ((await deed.run(argument)) === false && text) write(text);
}

function commands(written) {
  const all = offered().filter(({ slash }) => slash);
  const first = all.filter(({ slash }) => slash.startsWith(written));
  const also = all.filter((deed) => !first.includes(deed) && written && namesOf(deed).includes(written));
  return [...first, ...also].map((deed) => ({ label: `/${deed.slash}`, detail: deed.label, icon: deed.icon, deed }));
}

const namesOf = ({ label, words: more }) => `${label} ${more}`.toLowerCase();

async function choices(name, written) {
  const deed = named(name.toLowerCase());
  if (!deed?.choices || !deed.can()) return [];
  const fitting = (await deed.choices()).filter(({ label }) => label.toLowerCase().includes(written));
  return fitting.map((choice) => ({ icon: deed.icon, ...choice, deed }));
}
