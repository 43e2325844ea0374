// Run in the page by test_security.py. Checks how a user's text is rendered, and whether it stays in its place.
const TAGS = words(`p hr br h1 h2 h3 h4 h5 h6 em s strong blockquote ul ol li table thead tbody tr th td pre code div
  span bdi a button input math mi mn mo mtext mspace mrow mfrac msqrt mroot msub msup msubsup munder mover munderover
  mmultiscripts mprescripts mphantom mstyle mtable mtr mtd sup`);
const NAMES =
  words(`class dir href title target rel type disabled checked start tabindex role aria-labelledby aria-describedby data-action
  data-file data-picture display alttext mathvariant stretchy fence separator accent accentunder movablelimits largeop symmetric form
  minsize maxsize width linethickness displaystyle scriptlevel mathcolor`);
const ACTIONS = new Set([
  null,
  ...words(`copy-code copy-csv download-code footnote footnote-back load-picture preview
  show-code show-diagram wrap-code`),
]);
const NEVER = words("script style iframe frame object embed base meta link form template");
const SCROLLS = ".code pre, .table-wrap, .formula, .prose p:has(> math), pre.plain";

/** Applies the frames of each text to a message of its own, and inspects the message after each frame. */
async function stream(texts) {
  const { StreamingTexts } = await import("/sources/js/messages/frames.js"); // test_security.py serves this address
  const streams = new StreamingTexts();
  const bad = [];
  for (const [index, frames] of texts.entries()) {
    const article = place(`m_hostile${index}`);
    const body = article.querySelector("[data-body]");
    for (const frame of frames) {
      streams.apply({ ...frame, id: article.id });
      streams.flush();
      bad.push(...inspect(body));
    }
    await new Promise((resolve) => requestAnimationFrame(resolve));
    article.remove();
  }
  return bad;
}

/** Checks everything on the page that other users have written. */
function page() {
  const bad = [...document.querySelectorAll("#messages [data-body]")].flatMap(inspect);
  for (const element of document.querySelectorAll("#messages *, header *, nav *, aside *")) {
    const said = element.outerHTML.slice(0, 200);
    const names = element.getAttributeNames();
    if (names.some((name) => name.startsWith("on") || name === "srcdoc")) bad.push(["handler", said]);
    if (NEVER.has(element.localName) && !element.closest("header, nav, aside")) bad.push(["tag", said]);
    if (element.id && !/^[\w-]+$/.test(element.id)) bad.push(["id", said]);
  }
  const log = document.getElementById("log");
  if (log.scrollWidth > log.clientWidth) bad.push(["wide", `${log.scrollWidth} of ${log.clientWidth}`]);
  return bad;
}

function place(id) {
  const article = document.createElement("article");
  article.id = id;
  article.className = "message assistant";
  article.innerHTML =
    '<div class="column"><div class="bubble"><div class="prose" data-body dir="auto"></div></div></div>';
  document.getElementById("messages").append(article);
  return article;
}

function inspect(body) {
  const bad = [];
  const around = (body.closest(".bubble") ?? body.parentElement).getBoundingClientRect();
  for (const element of body.querySelectorAll("*")) {
    const said = element.outerHTML.slice(0, 200);
    if (!TAGS.has(element.localName)) bad.push(["tag", said]);
    for (const name of element.getAttributeNames()) if (!NAMES.has(name)) bad.push([name, said]);
    if (!ACTIONS.has(element.getAttribute("data-action"))) bad.push(["action", said]);
    if (element.href && !/^(https?|mailto):/.test(element.href)) bad.push(["address", said]);
    const isPlaced = !["static", "relative", "sticky"].includes(getComputedStyle(element).position);
    if (isPlaced && !element.matches(".table > .csv")) bad.push(["position", said]);
    if (!element.parentElement.closest(SCROLLS) && isOutside(element, around)) bad.push(["place", said]);
  }
  return bad;
}

function isOutside(element, around) {
  const { left, right, width } = element.getBoundingClientRect();
  return width > 0 && (left < around.left - 1 || right > around.right + 1);
}

function words(text) {
  return new Set(text.split(/\s+/));
}
