// Dictation, in browsers with speech recognition: inserts the recognised text at the caret.
import { offer, on, TOUCH } from "../ui/commands.js";
import { field, insert } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { notice, say, settle } from "../ui/notice.js";

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
const button = document.querySelector("[data-action=dictate]");
let listening = null;

export function connect() {
  if (!Recognition) return;
  button.hidden = false;
  on("dictate", toggle);
  offer({ id: "dictate", label: words.dictate, icon: "mic", run: toggle });
  addEventListener("pagehide", () => listening?.abort());
  field.form.addEventListener("submit", () => listening?.stop());
}

function toggle() {
  if (listening) return listening.stop();
  listening = new Recognition();
  listening.lang = document.documentElement.lang;
  listening.continuous = true;
  listening.onresult = heard;
  listening.onerror = failed;
  listening.onend = () => show(null);
  listening.start();
  show(listening);
  settle("dictation");
}

/** Inserts each sentence once, when its result is final. */
function heard({ results, resultIndex }) {
  for (const result of [...results].slice(resultIndex)) {
    if (!result.isFinal) continue;
    const before = field.value.slice(0, field.selectionStart);
    const said = result[0].transcript.trim();
    insert(before && !/\s$/.test(before) ? ` ${said}` : said);
  }
}

function failed({ error }) {
  if (["no-speech", "aborted"].includes(error)) return;
  const isDenied = ["not-allowed", "service-not-allowed", "audio-capture"].includes(error);
  notice(isDenied ? words.microphoneDenied : words.dictationFailed, { about: "dictation" });
}

function show(now) {
  const was = listening;
  listening = now;
  button.setAttribute("aria-pressed", String(now !== null));
  if (now) say(words.listening);
  else if (was && !TOUCH.matches) field.focus();
}
