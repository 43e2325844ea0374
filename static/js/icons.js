// The icons of icons.svg, for what is drawn in the browser.
const SVG = "http://www.w3.org/2000/svg";

/** An icon by its name; one of no name keeps the place of one. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  if (name) use.setAttribute("href", `${sprite()}#${name}`);
  svg.append(use);
  return svg;
}

// Its address has a hash of its content: any icon that the page was made with knows it.
const sprite = () => document.querySelector("svg.icon use[href]").getAttribute("href").split("#")[0];
