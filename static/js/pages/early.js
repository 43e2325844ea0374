// Records clicks, input and the key that sends until the page's modules are loaded, and then replays them. If they
// cannot be loaded, offers to reload the page.
(() => {
  // Elements that need a script. Links and forms with a method work without a script.
  const BUTTON = "button[type='button']";
  const FORM = "form:not([action], [method])";
  const listeners = new AbortController();
  const { signal } = listeners;
  let changes = [];
  let replay = () => {}; // repeats the last click, or the key that sends
  let enterKey = null; // where this key would have inserted a line break
  const touch = matchMedia("(pointer: coarse)");
  // A copy of the rule in ui/field.js, which is not loaded yet.
  const isSendKey = (event) => {
    if (event.target.id !== "text" || event.key !== "Enter" || event.shiftKey || event.altKey) return false;
    if (event.isComposing || event.keyCode === 229) return false;
    return (
      event.ctrlKey || event.metaKey || (!touch.matches && document.documentElement.dataset.sendKey !== "ctrl_enter")
    );
  };
  const postpone = (event, later) => {
    event.preventDefault();
    event.stopPropagation();
    replay = later;
  };
  const listen = (type, handler) => addEventListener(type, handler, { capture: true, signal });

  listen("click", (event) => {
    const button = event.target.closest(BUTTON);
    if (button) postpone(event, () => button.isConnected && button.click());
  });
  listen("submit", (event) => {
    const { target: form, submitter } = event;
    if (form.matches(FORM)) postpone(event, () => form.requestSubmit(submitter));
  });
  listen("keydown", (event) => {
    const { target } = event;
    if (!isSendKey(event)) return;
    postpone(event, () => target.form.requestSubmit());
    enterKey = { target, at: target.selectionStart };
  });
  for (const type of ["input", "change"]) {
    listen(type, (event) => {
      event.stopPropagation();
      const { target } = event;
      if (type === "input" && target === enterKey?.target) {
        // The user continues to type, so Enter was a line break and the message is not sent.
        target.setRangeText("\n", enterKey.at, enterKey.at);
        [replay, enterKey] = [() => {}, null];
      }
      changes = changes.filter((one) => one.target !== target || one.type !== type);
      changes.push({ target, type }); // sorted by their last change
    });
  }
  listen("error", ({ target }) => {
    if (target.type === "module")
      document.getElementById("toasts").append(document.getElementById("load-error").content);
  });
  document.addEventListener(
    "parley:ready",
    () => {
      listeners.abort();
      for (const { target, type } of changes) target.dispatchEvent(new Event(type, { bubbles: true }));
      replay();
    },
    { signal },
  );
})();
