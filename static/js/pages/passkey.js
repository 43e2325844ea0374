// Passkeys: creates one, or signs in with one, for each form with data-passkey.
// The browser's answer goes into the field "credential"; the form's [role=alert] shows errors, in texts that it has as data.
import { valueAt } from "../net/http.js";

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.getAttribute("aria-busy") !== "true") ask(form);
  });
  // Disabled until here: a form sent before this module runs would have no credential.
  const button = form.querySelector("button");
  button.disabled = false;
  if (button.autofocus && document.activeElement === document.body) button.focus();
}

async function ask(form) {
  form.setAttribute("aria-busy", "true");
  show(form, "");
  try {
    const { publicKey } = decoded(await optionsOf(form));
    const made = form.dataset.passkey === "create";
    const credential = await (made
      ? navigator.credentials.create({ publicKey })
      : navigator.credentials.get({ publicKey }));
    form.elements.credential.value = JSON.stringify(encoded(credential));
    form.submit();
  } catch (error) {
    form.removeAttribute("aria-busy");
    show(form, problem(alertOf(form).dataset, error));
  }
}

/** Returns the challenge from the page, or fetches it. */
async function optionsOf(form) {
  const { options } = form.dataset;
  return options ? valueAt(options) : JSON.parse(document.getElementById("passkey-options").textContent);
}

function problem({ unsupported, cancelled, known, failed }, error) {
  if (!("credentials" in navigator)) return unsupported;
  if (error.name === "NotAllowedError" || error.name === "AbortError") return cancelled;
  if (error.name === "InvalidStateError") return known;
  return failed;
}

function alertOf(form) {
  return form.querySelector("[role=alert]");
}

function show(form, text) {
  const alert = alertOf(form);
  alert.textContent = text;
  alert.hidden = !text;
}

function decoded({ publicKey }) {
  const list = (credentials = []) => credentials.map((each) => ({ ...each, id: bytes(each.id) }));
  const { challenge, user, excludeCredentials, allowCredentials, ...rest } = publicKey;
  const options = {
    ...rest,
    challenge: bytes(challenge),
    allowCredentials: list(allowCredentials),
    excludeCredentials: list(excludeCredentials),
  };
  return { publicKey: user ? { ...options, user: { ...user, id: bytes(user.id) } } : options };
}

function encoded(credential) {
  const { response } = credential;
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"].filter(
    (part) => response[part],
  );
  return {
    id: credential.id,
    rawId: text(credential.rawId),
    type: credential.type,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: Object.fromEntries(parts.map((part) => [part, text(response[part])])),
  };
}

function bytes(base64url) {
  return Uint8Array.from(atob(base64url.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
    character.charCodeAt(0),
  );
}

function text(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
