// The room that a keyboard on the glass leaves: some browsers lay it over the page instead of making the page smaller.
const view = window.visualViewport;
const root = document.documentElement;

/** Magnified by two fingers, the page is meant to be larger than what is seen of it. */
function fit() {
  const covered = view.scale === 1 && root.clientHeight - view.height > 1;
  if (!covered) return root.style.removeProperty("--room");
  root.style.setProperty("--room", `${view.height}px`);
  scrollTo(0, 0); // the browser has pushed the page up to show the field
}

view?.addEventListener("resize", fit);
