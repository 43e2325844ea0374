// Requests to the server.
import { keepInTab, kept, namesWith } from "./storage.js";

export const EDITS = "parley:edit:"; // unsaved edits in this tab, by the id of their message
export const LEFT = "parley:left-edit"; // the message that was being edited when the user had to sign in

const signInAt = () => document.getElementById("main").dataset.signIn;

const token = () => document.querySelector("[name=csrfmiddlewaretoken]").value;

/** Returns the id of the message that is being edited, the one with the focus first; "" if there is none. */
function edited() {
  const forms = [document.querySelector(".edit:focus-within"), ...document.querySelectorAll("#messages .edit")];
  const ids = forms.filter(Boolean).map((form) => form.closest("article")?.id);
  return ids.find((id) => id && kept(EDITS + id, "sessionStorage")) ?? "";
}

/** Goes to the sign-in page, which says why and returns here. Drafts are kept, unless the user signed out here. */
export function signIn() {
  const id = edited();
  keepInTab(LEFT, id || null);
  const reason = id ? "edit" : namesWith("parley:draft:").length ? "draft" : "yes";
  const values = { next: location.pathname, signed_out: reason };
  location.assign(`${signInAt()}?${new URLSearchParams(values)}`);
}

/** Fetches an address; resolves to its text, or to null if the request failed. */
export async function textAt(address, options = {}) {
  const answer = await asked(address, options);
  return answer?.ok ? answer.text().catch(() => null) : null;
}

const PROBE = "/healthz";
const PROBE_WITHIN = 3_000;

/** Resolves to whether the server responds now. A proxy answers with an error for a server that is down. */
export async function responds() {
  const options = { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(PROBE_WITHIN) };
  const answer = await fetch(PROBE, options).catch(() => null);
  return answer !== null && answer.status < 500;
}

/** Fetches an address; resolves to its JSON value, or to null if the request failed. */
export async function valueAt(address) {
  const answer = await asked(address);
  return answer?.ok ? answer.json().catch(() => null) : null;
}

/** Posts values; resolves to the server's answer, rejects with an Error whose message can be shown to the user. */
export async function post(address, values, failed, options = {}) {
  const headers = { "X-CSRFToken": token(), Accept: "application/json" };
  const answer = await asked(address, { method: "POST", headers, body: new URLSearchParams(values), ...options });
  const isValue = answer?.headers.get("Content-Type")?.startsWith("application/json");
  const said = isValue ? await answer.json().catch(() => null) : {};
  if (!answer?.ok || !said) throw new Error(said?.message ?? failed);
  return said;
}

/** Posts a form; resolves to the status and the JSON of the answer, or to status 0 if the request failed. */
export async function postForm(address, body, signal) {
  const headers = { "X-CSRFToken": token(), Accept: "application/json" };
  const response = await asked(address, { method: "POST", headers, body, signal });
  const answer = await response?.json().catch(() => null);
  return answer ? { status: response.status, answer } : { status: 0, answer: null };
}

/**
 * Sends a form with a file and returns the request: fetch reports no progress. `progress` is called with the bytes that
 * are sent and their total, `answered` with the request, which has the status and JSON.
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

/** Returns a form with one file and other values. */
export function formWith(file, name, values = {}) {
  const body = new FormData();
  for (const [key, value] of Object.entries(values)) body.append(key, value);
  body.append("file", file, name);
  return body;
}

/** Resolves to the response, or to null: after a network error, a redirect, or a sign-out (which leads to sign-in). */
async function asked(address, options) {
  const answer = await fetch(address, options).catch(() => null);
  if (!answer?.redirected) return answer;
  if (new URL(answer.url).pathname === signInAt()) signIn();
  return null;
}
