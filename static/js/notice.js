// Words to the person at this page: why something was refused, what was kept.

/** Shows one notice; the next one takes its place. */
export function notice(text) {
  const element = document.getElementById("notice").content.firstElementChild.cloneNode(true);
  element.querySelector("span").textContent = text;
  document.getElementById("notices").replaceChildren(element);
}

/** Reads words out. */
export function say(words) {
  document.getElementById("announcer").textContent = words;
}

/** Reads a finished message of somebody else out; tokens are never read out. */
export function announce(element) {
  if (element.matches(".mine, .reasoning, .tool_group")) return;
  const text = element.querySelector(".prose, .plain")?.textContent.trim() ?? "";
  say(`${element.getAttribute("aria-label")}: ${text.slice(0, 1000)}`);
}
