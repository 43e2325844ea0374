// Creates a passkey, or signs in with one, for each form with data-passkey. The browser's answer is put into the field
// "credential". Errors are shown in the form's [role=alert], which has their texts as data.
import { fetchJsonOrThrow } from "../net/http.js";

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.getAttribute("aria-busy") !== "true") submitWithPasskey(form);
  });
  // The button is disabled until this module runs, because the form would be sent without a credential.
  const button = form.querySelector("button");
  button.disabled = false;
  if (button.autofocus && document.activeElement === document.body) button.focus();
}

async function submitWithPasskey(form) {
  form.setAttribute("aria-busy", "true");
  showError(form, "");
  try {
    const { publicKey } = decodeOptions(await optionsOf(form));
    const isCreation = form.dataset.passkey === "create";
    const credential = await (isCreation
      ? navigator.credentials.create({ publicKey })
      : navigator.credentials.get({ publicKey }));
    form.elements.credential.value = JSON.stringify(encodeCredential(credential));
    form.submit();
  } catch (error) {
    form.removeAttribute("aria-busy");
    showError(form, errorText(alertOf(form).dataset, error));
  }
}

/** Returns the challenge from the page, or fetches it. If the server refuses it, rejects as `fetchJsonOrThrow` does. */
async function optionsOf(form) {
  const { options } = form.dataset;
  if (options) return fetchJsonOrThrow(options, alertOf(form).dataset.failed);
  return JSON.parse(document.getElementById("passkey-options").textContent);
}

function errorText({ unsupported, cancelled, known, failed }, error) {
  if (!("credentials" in navigator)) return unsupported;
  if (error.name === "NotAllowedError" || error.name === "AbortError") return cancelled;
  if (error.name === "InvalidStateError") return known;
  // Browsers reject with subclasses, whose messages are for developers.
  return error.constructor === Error ? error.message : failed;
}

function alertOf(form) {
  return form.querySelector("[role=alert]");
}

function showError(form, text) {
  const alert = alertOf(form);
  alert.textContent = text;
  alert.hidden = !text;
}

function decodeOptions({ publicKey }) {
  const list = (credentials = []) => credentials.map((each) => ({ ...each, id: decodeBase64Url(each.id) }));
  const { challenge, user, excludeCredentials, allowCredentials, ...rest } = publicKey;
  const options = {
    ...rest,
    challenge: decodeBase64Url(challenge),
    allowCredentials: list(allowCredentials),
    excludeCredentials: list(excludeCredentials),
  };
  return { publicKey: user ? { ...options, user: { ...user, id: decodeBase64Url(user.id) } } : options };
}

function encodeCredential(credential) {
  const { response } = credential;
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"].filter(
    (part) => response[part],
  );
  return {
    id: credential.id,
    rawId: encodeBase64Url(credential.rawId),
    type: credential.type,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: Object.fromEntries(parts.map((part) => [part, encodeBase64Url(response[part])])),
  };
}

function decodeBase64Url(base64url) {
  return Uint8Array.from(atob(base64url.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
    character.charCodeAt(0),
  );
}

function encodeBase64Url(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
