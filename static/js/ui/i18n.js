// The texts of the scripts in the user's language, from templates/chat/words.html. Pages outside of sessions have none.

const said = document.getElementById("words")?.dataset ?? {};

/** `words.tooLong` is data-too-long. Throws for an unknown name. */
export const words = new Proxy(said, {
  get(all, name) {
    if (typeof name === "string" && !(name in all)) throw new Error(`No words for ${name}`);
    return all[name];
  },
});

/** Replaces the {placeholders} of a text. */
export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
}
