// How the page hangs on the server: the word in the header, and what to do when it is over.
import { live, page } from "./page.js";
import { signIn } from "./server.js";
import { words } from "./words.js";

const line = document.getElementById("connection");

live.addEventListener("state", ({ detail: { state, reason } }) => {
  line.dataset.state = state;
  page.toggleAttribute("data-over", state === "closed");
  line.textContent = said(state, reason);
  if (state === "closed" && reason !== "signed-out") line.append(" ", wayHome());
  if (reason === "signed-out") signIn();
});

function said(state, reason) {
  if (state !== "closed") return words[state];
  return { "no-access": words.noAccess, gone: words.gone, "signed-out": words.signedOut }[reason];
}

/** What was read can still be read; everything else is elsewhere. */
function wayHome() {
  const link = document.createElement("a");
  link.href = page.dataset.home;
  link.textContent = words.yourSessions;
  return link;
}

