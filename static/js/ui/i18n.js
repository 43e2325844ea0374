// The texts of the scripts in the user's language, from templates/chat/words.html. Pages outside of sessions have none.

const texts = document.getElementById("words")?.dataset ?? {};

/** The texts by name: `words.tooLong` is the attribute data-too-long. Throws for an unknown name. */
export const words = new Proxy(texts, {
  get(all, name) {
    if (typeof name === "string" && !(name in all)) throw new Error(`No words for ${name}`);
    return all[name];
  },
});

// The maximum length of a name in a sentence about one person [1] and about two [2], so that it fits on a phone.
const MAX_NAME_LENGTHS = [0, 30, 16];

/** Returns a sentence about people. `sentences` has the one for one person, for two, and for more. */
export function aboutPeople(sentences, names) {
  const [name, other] = names.map((each) => isolateName(each, MAX_NAME_LENGTHS[names.length]));
  return format(sentences[Math.min(names.length, 3) - 1], { name, other });
}

/** Returns a name to put into a sentence: shortened, and with marks that keep the direction of its script inside it. */
function isolateName(name, longest) {
  const letters = [...name];
  return `\u2068${letters.length > longest ? `${letters.slice(0, longest).join("").trimEnd()}…` : name}\u2069`;
}

/** Replaces the {placeholders} of a text. */
export function format(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
}

/** Returns the text for one thing, or the text for several with their number in place of {count}. */
export const countText = (count, one, many) => (count === 1 ? one : format(many, { count }));
