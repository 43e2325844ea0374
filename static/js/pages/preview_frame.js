// The inline script of a preview's frame. It replaces the document by content that the outer page sends.
addEventListener("message", function start({ source, data }) {
  if (source !== parent) return;
  removeEventListener("message", start);
  // A Content-Security-Policy does not cover these ways to the network.
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"]) delete window[name];
  withoutScriptsInFrames();
  keepStorageInMemory();
  const { write } = document;
  writeWholePieces();
  document.open();
  // Links become `<meta>` elements, which have no content, either: a policy does not cover `<link rel="preconnect">`, and
  // blocks all that other links load.
  const content = data.replaceAll(/(src)(doc)|(<!)(entity)/gi, "$1$3_$2$4").replaceAll(/<link(?=[\s/>])/gi, "<meta");
  write.call(document, content);
  document.close();
  addEventListener("keydown", ({ key }) => key === "Escape" && parent.postMessage("close", "*"));
  // The policy blocks the sending of forms, but Chromium then replaces the preview by an error page.
  addEventListener("submit", (event) => {
    const method = event.submitter?.getAttribute("formmethod") ?? event.target.getAttribute("method");
    if (method?.toLowerCase() !== "dialog") event.preventDefault();
  });
});

/**
 * Lets no frame in the content run scripts, because it would have the ways to the network again.
 *
 * Only `srcdoc` and `javascript:` URLs could run scripts in such a frame. The policy of this page passes all HTML and all
 * such URLs that scripts of the content use to these functions. Those scripts can change all prototypes.
 */
function withoutScriptsInFrames() {
  const { apply } = Reflect;
  const { exec } = RegExp.prototype;
  const isRefused = (text) => apply(exec, /srcdoc|<!entity|<link[\s/>]/i, [text]) !== null;
  delete window.XSLTProcessor;
  globalThis.trustedTypes?.createPolicy("default", {
    createHTML: (html, _type, sink) => (isRefused(`${sink} ${html}`) ? "" : html),
    createScript: (code, _type, sink) => (apply(exec, /^Location/, [sink]) ? null : code),
    createScriptURL: (address) => address,
  });
}

/** Gives scripts a storage that ends with the preview. A frame without an origin has none, and an access is an error. */
function keepStorageInMemory() {
  for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, { value: createStorage(new Map()), configurable: true });
}

function createStorage(items) {
  const methods = {
    getItem: (key) => items.get(String(key)) ?? null,
    setItem: (key, value) => void items.set(String(key), String(value)),
    removeItem: (key) => void items.delete(String(key)),
    clear: () => items.clear(),
    key: (index) => [...items.keys()][index] ?? null,
  };
  // Scripts also read and set items as properties.
  return new Proxy(methods, {
    get: (_target, name) => (name === "length" ? items.size : (methods[name] ?? items.get(name))),
    set: (_target, name, value) => (methods.setItem(name, value), true),
    deleteProperty: (_target, name) => (items.delete(name), true),
    has: (_target, name) => name in methods || items.has(name),
    ownKeys: () => [...items.keys()],
    getOwnPropertyDescriptor: (_target, name) =>
      items.has(name) ? { value: items.get(name), writable: true, enumerable: true, configurable: true } : undefined,
  });
}

/** Lets `document.write` of the content write whole pieces, so that no tag is made of two pieces. */
function writeWholePieces() {
  function write(...texts) {
    (this.body ?? this.documentElement).insertAdjacentHTML("beforeend", texts.join(""));
  }
  Object.assign(Document.prototype, { write, writeln: write });
}
