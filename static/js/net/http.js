// Requests to the server.
import { readStored, storedNames, writeTab } from "./storage.js";

export const EDIT_PREFIX = "parley:edit:"; // unsaved edits in this tab, by the id of their message
export const INTERRUPTED_EDIT = "parley:left-edit"; // the message that was being edited when the user had to sign in

const signInPath = () => document.getElementById("main").dataset.signIn;

const csrfToken = () => document.querySelector("[name=csrfmiddlewaretoken]").value;

/** When this page was requested, in ms since the epoch. */
export const PAGE_REQUESTED_AT = Date.now() - performance.now();

/** Returns the id of a message with an unsaved edit, preferably the one with the focus, or "". */
function currentEditId() {
  const forms = [document.querySelector(".edit:focus-within"), ...document.querySelectorAll("#messages .edit")];
  const ids = forms.filter(Boolean).map((form) => form.closest("article")?.id);
  return ids.find((id) => id && readStored(EDIT_PREFIX + id, "sessionStorage")) ?? "";
}

// If the user has changed the password in another tab, this browser gets its new cookie within this time. With it, the
// sign-in page leads back immediately.
const COOKIE_DELAY_MS = 1000;

/** Opens the sign-in page, which leads back to this page. The reason tells it whether a draft or an edit is unsaved. */
export function goToSignIn() {
  const id = currentEditId();
  writeTab(INTERRUPTED_EDIT, id || null);
  const reason = id ? "edit" : storedNames("parley:draft:").length ? "draft" : "yes";
  const values = { next: location.pathname, signed_out: reason };
  setTimeout(() => location.assign(`${signInPath()}?${new URLSearchParams(values)}`), COOKIE_DELAY_MS);
}

/** Fetches an address. Resolves to the text of the response, or to null if the request failed. */
export async function fetchText(address, options = {}) {
  const response = await fetchOrSignIn(address, options);
  return response?.ok ? response.text().catch(() => null) : null;
}

const HEALTH_ADDRESS = "/healthz";
const HEALTH_TIMEOUT_MS = 3_000;

/**
 * Resolves to whether the server responds now. A server error counts as no response, because a proxy may have sent it.
 */
export async function serverResponds() {
  const options = { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS) };
  const response = await fetch(HEALTH_ADDRESS, options).catch(() => null);
  return response !== null && response.status < 500;
}

/** Fetches an address. Resolves to the JSON value of the response, or to null if the request failed. */
export async function fetchJson(address) {
  const response = await fetchOrSignIn(address);
  return response?.ok ? response.json().catch(() => null) : null;
}

/**
 * Fetches an address. Resolves to the JSON of the response. Rejects with an Error whose message can be shown to the
 * user: that of the server, or `fallback`.
 */
export async function fetchJsonOrThrow(address, fallback) {
  return valueOf(await fetchOrSignIn(address, { headers: { Accept: "application/json" } }), fallback);
}

/**
 * Posts values. Resolves to the JSON of the response, or to {} if it has none. Rejects with an Error whose message can
 * be shown to the user: that of the server, or `fallback`.
 */
export async function post(address, values, fallback, options = {}) {
  const headers = { "X-CSRFToken": csrfToken(), Accept: "application/json" };
  const response = await fetchOrSignIn(address, {
    method: "POST",
    headers,
    body: new URLSearchParams(values),
    ...options,
  });
  return valueOf(response, fallback);
}

async function valueOf(response, fallback) {
  const isValue = response?.headers.get("Content-Type")?.startsWith("application/json");
  const result = isValue ? await response.json().catch(() => null) : {};
  if (!response?.ok || !result) throw new Error(result?.message ?? fallback);
  return result;
}

/** Posts a form. Resolves to the status and the JSON of the response, or to the status 0 if the request failed. */
export async function postForm(address, body, signal) {
  const headers = { "X-CSRFToken": csrfToken(), Accept: "application/json" };
  const response = await fetchOrSignIn(address, { method: "POST", headers, body, signal });
  const answer = await response?.json().catch(() => null);
  return answer ? { status: response.status, answer } : { status: 0, answer: null };
}

/**
 * Sends a form with a file and returns the XMLHttpRequest, which reports progress, unlike fetch. `progress` is called
 * with the number of sent bytes and the total, `answered` with the finished request, whose `response` is the JSON.
 */
export function uploadFile(address, body, { progress, answered, failed }) {
  const request = new XMLHttpRequest();
  request.open("POST", address);
  request.setRequestHeader("X-CSRFToken", csrfToken());
  request.setRequestHeader("accept", "application/json");
  request.responseType = "json";
  request.upload.onprogress = ({ loaded, total }) => progress(loaded, total);
  request.onload = () => answered(request);
  request.onerror = () => failed();
  request.send(body);
  return request;
}

/** Returns a form with one file and other values. */
export function formDataWithFile(file, name, values = {}) {
  const body = new FormData();
  for (const [key, value] of Object.entries(values)) body.append(key, value);
  body.append("file", file, name);
  return body;
}

/** Resolves to the response, or to null after a network error or a redirect. Goes to sign-in if signed out. */
async function fetchOrSignIn(address, options) {
  const response = await fetch(address, options).catch(() => null);
  if (!response?.redirected) return response;
  if (new URL(response.url).pathname === signInPath()) goToSignIn();
  return null;
}
