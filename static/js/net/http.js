// Asking the server for something, and to do something.

const signInAt = () => document.getElementById("main").dataset.signIn;

const token = () => document.querySelector("[name=csrfmiddlewaretoken]").value;

/** Leads to signing in and back here. Drafts are kept: they are there again. */
export function signIn() {
  location.assign(`${signInAt()}?next=${encodeURIComponent(location.pathname)}`);
}

/** Resolves to what is at an address, as text; to null when it did not come. */
export async function textAt(address, options = {}) {
  const answer = await asked(address, options);
  return answer?.ok ? answer.text().catch(() => null) : null;
}

/** Resolves to what is at an address, as a value; to null when it did not come. */
export async function valueAt(address) {
  const answer = await asked(address);
  return answer?.ok ? answer.json().catch(() => null) : null;
}

/** Posts values; resolves to what the server answers, rejects with an Error that says, to a person, why not. */
export async function post(address, values, failed, options = {}) {
  const headers = { "X-CSRFToken": token(), Accept: "application/json" };
  const answer = await asked(address, { method: "POST", headers, body: new URLSearchParams(values), ...options });
  const isValue = answer?.headers.get("Content-Type")?.startsWith("application/json");
  const said = isValue ? await answer.json().catch(() => null) : {};
  if (!answer?.ok || !said) throw new Error(said?.message ?? failed);
  return said;
}

/** Posts a form; resolves to the status and the JSON of the answer, or to status 0 when there is none. */
export async function postForm(address, body, signal) {
  const headers = { "X-CSRFToken": token(), Accept: "application/json" };
  const response = await asked(address, { method: "POST", headers, body, signal });
  const answer = await response?.json().catch(() => null);
  return answer ? { status: response.status, answer } : { status: 0, answer: null };
}

/**
 * Sends a form with a file, and returns the request: fetch would not tell how far it is. `progress` is given the bytes that
 * are sent, and all; `answered` the request with its status and JSON.
 */
export function sendFile(address, body, { progress, answered, failed }) {
  const request = new XMLHttpRequest();
  request.open("POST", address);
  request.setRequestHeader("X-CSRFToken", token());
  request.setRequestHeader("accept", "application/json");
  request.responseType = "json";
  request.upload.onprogress = ({ loaded, total }) => progress(loaded, total);
  request.onload = () => answered(request);
  request.onerror = () => failed();
  request.send(body);
  return request;
}

/** A form with one file, and other values. */
export function formWith(file, name, values = {}) {
  const body = new FormData();
  for (const [key, value] of Object.entries(values)) body.append(key, value);
  body.append("file", file, name);
  return body;
}

/** The answer, or null where none came. Another page is none; who has been signed out is led to signing in. */
async function asked(address, options) {
  const answer = await fetch(address, options).catch(() => null);
  if (!answer?.redirected) return answer;
  if (new URL(answer.url).pathname === signInAt()) signIn();
  return null;
}
