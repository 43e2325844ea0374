// The script of a diagram's frame. It draws the code that the page sends, and reports the diagram's height or an error.
(() => {
  const MARGIN = 14;
  const MIN_SCALE = 0.7; // smaller diagrams scroll instead
  // The colors of the page's style sheet, in the form that the library needs.
  const LIGHT = {
    background: "#f3f4f8",
    primaryColor: "#e9ebfd",
    primaryBorderColor: "#6a72d9",
    primaryTextColor: "#1f2333",
    lineColor: "#596079",
    textColor: "#1f2333",
    secondaryColor: "#e2f1ea",
    tertiaryColor: "#f7f1e2",
    edgeLabelBackground: "#f3f4f8",
    noteBkgColor: "#fbf3d9",
    noteTextColor: "#1f2333",
    noteBorderColor: "#b99a3b",
    pieStrokeColor: "#f3f4f8",
    pieOuterStrokeColor: "#f3f4f8",
    pieOpacity: 1,
    pie1: "#a9b0f5",
    pie2: "#8fd0b3",
    pie3: "#e8c873",
    pie4: "#ee9fa0",
    pie5: "#8fc4e8",
    pie6: "#cfa6e8",
  };
  const DARK = {
    background: "#14161d",
    primaryColor: "#2a2f4d",
    primaryBorderColor: "#8f97f0",
    primaryTextColor: "#e8eaf2",
    lineColor: "#a4a9bd",
    textColor: "#e8eaf2",
    secondaryColor: "#203a32",
    tertiaryColor: "#3a3423",
    edgeLabelBackground: "#14161d",
    noteBkgColor: "#3a3423",
    noteTextColor: "#e8eaf2",
    noteBorderColor: "#a98f45",
    pieStrokeColor: "#14161d",
    pieOuterStrokeColor: "#14161d",
    pieOpacity: 1,
    pie1: "#5a63c9",
    pie2: "#2f8463",
    pie3: "#94762a",
    pie4: "#a8494c",
    pie5: "#3a7ba6",
    pie6: "#7c4fa3",
    darkMode: true,
  };
  // On paper, a dark diagram is drawn light: with the same hues, and without a dark ground.
  const PRINT_STYLES = `@media print {
    :root.dark { color-scheme: light !important }
    .dark svg { filter: invert(1) hue-rotate(180deg) }
  }`;
  let pending = null;
  let isDrawing = false;

  const report = (message) => parent.postMessage(message, "*");
  const reportHeight = () => {
    const svg = document.body.querySelector("svg");
    const scrollbar = innerHeight - document.documentElement.clientHeight;
    if (svg) report({ height: Math.ceil(svg.getBoundingClientRect().height) + 2 * MARGIN + scrollbar });
  };

  async function draw({ code, dark }) {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      suppressErrorRendering: true,
      look: "classic",
      theme: "base",
      themeVariables: dark ? DARK : LIGHT,
      fontFamily: "system-ui, sans-serif",
    });
    const { svg } = await mermaid.render("diagram", code);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
    document.documentElement.classList.toggle("dark", dark);
    document.body.style.margin = `${MARGIN}px`;
    document.body.innerHTML = svg;
    show(document.body.querySelector("svg"));
    reportHeight();
  }

  function show({ style }) {
    style.display = "block";
    style.marginInline = "auto";
    const width = Number.parseFloat(style.maxWidth);
    if (width) style.minWidth = `${width * MIN_SCALE}px`;
  }

  /** Draws one diagram at a time, and only the newest one, because the theme may change while one is drawn. */
  async function drawAll() {
    isDrawing = true;
    while (pending) {
      const next = pending;
      pending = null;
      try {
        await draw(next);
      } catch (error) {
        report({
          error: String(error?.message ?? error)
            .split("\n")[0]
            .replace(/:$/, ""),
        });
      }
    }
    isDrawing = false;
  }

  document.head.append(Object.assign(document.createElement("style"), { textContent: PRINT_STYLES }));
  addEventListener("message", ({ source, data }) => {
    if (source !== parent) return;
    if (!globalThis.mermaid) return report({ missing: true });
    pending = data;
    if (!isDrawing) drawAll();
  });
  addEventListener("resize", reportHeight);
})();
