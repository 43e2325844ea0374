// A session's page in the admin: shows at intervals what the agent does, and whether the session has changed since.
const facts = document.getElementById("session-facts");
const INTERVAL = 3000;

async function fetchState() {
  if (document.hidden) return;
  const answer = await fetch(facts.dataset.stateUrl, { headers: { Accept: "application/json" } });
  if (!answer.ok || answer.redirected) return;
  showState(await answer.json());
}

function showState(now) {
  document.getElementById("session-run").innerHTML = now.state;
  document.getElementById("session-state").innerHTML = now.status;
  document.getElementById("session-stop")?.toggleAttribute("hidden", !now.works);
  document.getElementById("session-moved").hidden = String(now.revision) === facts.dataset.revision;
}

async function poll() {
  try {
    await fetchState();
  } catch {
    // The server cannot be reached at the moment. The next request shows the state.
  }
  setTimeout(poll, INTERVAL);
}

setTimeout(poll, INTERVAL);
document.addEventListener("visibilitychange", () => fetchState().catch(() => {}));
