// The inside of a diagram's frame: draws what the page sends, and reports its height or what is wrong with it.
(() => {
  const MARGIN = 14;
  let wanted = null;
  let drawing = false;

  const report = (message) => parent.postMessage(message, "*");
  const reportHeight = () => {
    const svg = document.body.querySelector("svg");
    if (svg) report({ height: Math.ceil(svg.getBoundingClientRect().height) + 2 * MARGIN });
  };

  async function draw({ code, dark }) {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      suppressErrorRendering: true,
      theme: dark ? "dark" : "default",
      fontFamily: "system-ui, sans-serif",
    });
    const { svg } = await mermaid.render("diagram", code);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
    document.body.style.margin = `${MARGIN}px`;
    document.body.innerHTML = svg;
    Object.assign(document.body.querySelector("svg").style, { display: "block", marginInline: "auto" });
    reportHeight();
  }

  /** One at a time, and only the newest: the theme may change while a diagram is drawn. */
  async function drawAll() {
    drawing = true;
    while (wanted) {
      const next = wanted;
      wanted = null;
      try {
        await draw(next);
      } catch (error) {
        report({ error: String(error?.message ?? error).split("\n")[0].replace(/:$/, "") });
      }
    }
    drawing = false;
  }

  addEventListener("message", ({ source, data }) => {
    if (source !== parent) return;
    if (!globalThis.mermaid) return report({ missing: true });
    wanted = data;
    if (!drawing) drawAll();
  });
  addEventListener("resize", reportHeight);
})();
