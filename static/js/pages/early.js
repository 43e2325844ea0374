// Keeps clicks and input from before the modules are loaded, and replays them then.
(() => {
  // Elements that need a script. Links, and forms with a method, work without one.
  const BUTTON = "button[type='button']";
  const FORM = "form:not([action], [method])";
  const arrival = new AbortController();
  const { signal } = arrival;
  let written = [];
  let wanted = () => {}; // only the last click
  const hold = (event, later) => {
    event.preventDefault();
    event.stopPropagation();
    wanted = later;
  };
  const early = (type, heed) => addEventListener(type, heed, { capture: true, signal });

  early("click", (event) => {
    const button = event.target.closest(BUTTON);
    if (button) hold(event, () => button.isConnected && button.click());
  });
  early("submit", (event) => {
    const { target: form, submitter } = event;
    if (form.matches(FORM)) hold(event, () => form.requestSubmit(submitter));
  });
  for (const type of ["input", "change"]) {
    early(type, (event) => {
      event.stopPropagation();
      const { target } = event;
      written = written.filter((one) => one.target !== target || one.type !== type);
      written.push({ target, type }); // ordered by their last change
    });
  }
  document.addEventListener(
    "parley:ready",
    () => {
      arrival.abort();
      for (const { target, type } of written) target.dispatchEvent(new Event(type, { bubbles: true }));
      wanted();
    },
    { signal },
  );
})();
