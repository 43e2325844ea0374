/* Says on a session's page what its agent does now, and that the session has moved on. */
const facts = document.getElementById("session-facts");
const INTERVAL = 3000;

async function look() {
  if (document.hidden) return;
  const answer = await fetch(facts.dataset.stateUrl, { headers: { Accept: "application/json" } });
  if (!answer.ok || answer.redirected) return;
  tell(await answer.json());
}

function tell(now) {
  document.getElementById("session-run").innerHTML = now.state;
  document.getElementById("session-state").innerHTML = now.status;
  document.getElementById("session-stop")?.toggleAttribute("hidden", !now.works);
  document.getElementById("session-moved").hidden = String(now.revision) === facts.dataset.revision;
}

async function watch() {
  try {
    await look();
  } catch {
    // The server is away for a moment: the next look tells.
  }
  setTimeout(watch, INTERVAL);
}

setTimeout(watch, INTERVAL);
document.addEventListener("visibilitychange", () => look().catch(() => {}));
