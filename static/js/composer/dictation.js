// Dictation: inserts the recognized text at the caret, until it is turned off or the message is sent.
import { TOUCH } from "../ui/commands.js";
import { field, insertText } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { announce, clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
const button = document.querySelector("[data-action=dictate]");
let recognition = null;

export function connect() {
  addEventListener("pagehide", () => recognition?.abort());
  field.form.addEventListener("submit", () => recognition?.stop());
}

export function toggleDictation() {
  if (recognition) return recognition.stop();
  recognition = new Recognition();
  recognition.lang = document.documentElement.lang;
  recognition.continuous = true;
  recognition.onresult = insertResults;
  recognition.onerror = reportError;
  recognition.onend = () => setRecognition(null);
  recognition.start();
  setRecognition(recognition);
  clearNoticeAfterSuccess("dictation");
}

/** Inserts the final results. Interim results are ignored, because they repeat and change. */
function insertResults({ results, resultIndex }) {
  for (const result of [...results].slice(resultIndex)) {
    if (!result.isFinal) continue;
    const before = field.value.slice(0, field.selectionStart);
    const text = result[0].transcript.trim();
    insertText(before && !/\s$/.test(before) ? ` ${text}` : text);
  }
}

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
