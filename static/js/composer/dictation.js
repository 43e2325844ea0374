// Dictation: inserts the recognized text at the caret, until it is turned off or the message is sent.
import { TOUCH } from "../ui/commands.js";
import { field, insertText } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { announce, clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
const isAndroid = /Android/.test(navigator.userAgent);
const button = document.querySelector("[data-action=dictate]");
let recognition = null;
let heard = ""; // what the recognition has recognized finally, and is inserted

export function connect() {
  addEventListener("pagehide", () => recognition?.abort());
  field.form.addEventListener("submit", () => recognition?.stop());
}

export function toggleDictation() {
  if (recognition) return recognition.stop();
  recognition = new Recognition();
  heard = "";
  recognition.lang = document.documentElement.lang;
  recognition.continuous = true;
  recognition.onresult = insertResults;
  recognition.onerror = reportError;
  recognition.onend = () => setRecognition(null);
  recognition.start();
  setRecognition(recognition);
  clearNoticeAfterSuccess("dictation");
}

/** Inserts what the final results add to the earlier ones. Chrome for Android reports these again, with a low index. */
function insertResults({ results }) {
  const text = finalText([...results]);
  if (beginsWith(heard, text)) return;
  const added = heard && beginsWith(text, heard) ? text.slice(heard.length) : ` ${text}`;
  heard = text;
  const before = field.value.slice(0, field.selectionStart);
  insertText(before && !/\s$/.test(before) ? added : added.trimStart());
}

/**
 * Returns the text of all final results. Interim results are left out, because they change. On Android, so are final
 * results with which the next one begins, because Chrome reports interim results as final there.
 */
function finalText(results) {
  const texts = results.filter(({ isFinal }) => isFinal).map(([{ transcript }]) => transcript.trim());
  return texts.filter((text, index) => !isAndroid || !beginsWith(texts[index + 1] ?? "", text)).join(" ");
}

const beginsWith = (text, start) => text.toLowerCase().startsWith(start.toLowerCase());

function reportError({ error }) {
  if (["no-speech", "aborted"].includes(error)) return;
  const isDenied = ["not-allowed", "service-not-allowed", "audio-capture"].includes(error);
  showNotice(isDenied ? words.microphoneDenied : words.dictationFailed, { about: "dictation" });
}

function setRecognition(next) {
  const previous = recognition;
  recognition = next;
  button.setAttribute("aria-pressed", String(next !== null));
  if (next) announce(words.listening);
  else if (previous && !TOUCH.matches) field.focus();
}
