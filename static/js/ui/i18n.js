// The texts of the scripts in the user's language, from templates/chat/words.html. Pages outside of sessions have none.

const said = document.getElementById("words")?.dataset ?? {};

/** `words.tooLong` is data-too-long. Throws for an unknown name. */
export const words = new Proxy(said, {
  get(all, name) {
    if (typeof name === "string" && !(name in all)) throw new Error(`No words for ${name}`);
    return all[name];
  },
});

// The longest name in a sentence about one person, and about two, so that it fits a phone.
const LONGEST = [0, 30, 16];

/** Returns a sentence about people: the one of three that is for one of them, for two, or for more. */
export function aboutPeople(sentences, names) {
  const [name, other] = names.map((each) => isolated(each, LONGEST[names.length]));
  return fill(sentences[Math.min(names.length, 3) - 1], { name, other });
}

/** Returns a name for use in a sentence: shortened, and isolated from the direction of the text around it. */
function isolated(name, longest) {
  const letters = [...name];
  return `\u2068${letters.length > longest ? `${letters.slice(0, longest).join("").trimEnd()}…` : name}\u2069`;
}

/** Replaces the {placeholders} of a text. */
export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
}
