// What WCAG AA asks for and a script can see, as sentences. Returned to WebDriver: an empty list is a good page.
const found = [];
const isShown = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const place = (node) => `${node.localName}${node.id ? `#${node.id}` : ""}${node.getAttribute("class") ? `.${node.getAttribute("class")}` : ""} "${(node.textContent ?? "").trim().slice(0, 30)}"`;
const complain = (node, words) => found.push(`${place(node)}: ${words}`);
const shown = (selector) => [...document.querySelectorAll(selector)].filter(isShown);

function nameOf(node) {
  const label = node.getAttribute("aria-label");
  if (label?.trim()) return label;
  const by = node.getAttribute("aria-labelledby");
  if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
  if (node.labels?.length) return [...node.labels].map((each) => each.textContent).join(" ").trim();
  if (node.localName === "img") return node.getAttribute("alt") ?? "";
  return [node.textContent, ...[...node.querySelectorAll("img[alt]")].map((each) => each.alt)].join(" ").trim();
}

// The document
if (!document.documentElement.lang) found.push("the page has no language");
if (!document.title.trim()) found.push("the page has no title");
for (const landmark of ["header", "nav", "main", "footer"])
  if (shown(landmark).length !== 1) found.push(`there are ${shown(landmark).length} of ${landmark}`);
const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
for (const id of new Set(ids.filter((each, at) => ids.indexOf(each) !== at))) found.push(`the id ${id} is there twice`);
for (const attribute of ["aria-labelledby", "aria-describedby", "for"])
  for (const node of document.querySelectorAll(`[${attribute}]`))
    for (const id of node.getAttribute(attribute).split(/\s+/)) if (!document.getElementById(id)) complain(node, `${attribute} points nowhere`);

// Headings: one h1, no level left out
const levels = shown("h1, h2, h3, h4").map((node) => [node, Number(node.localName[1])]);
if (levels.filter(([, level]) => level === 1).length !== 1) found.push(`there are ${levels.filter(([, level]) => level === 1).length} h1`);
levels.reduce((before, [node, level]) => {
  if (level > before + 1) complain(node, `follows a heading of level ${before}`);
  return level;
}, 0);

// Names
for (const node of shown("a[href], button, summary, input:not([type=hidden]), select, textarea, progress, canvas, [role=img], [role=region], table[aria-labelledby], section, nav"))
  if (!nameOf(node)) complain(node, "has no name");
for (const node of shown("img")) if (!node.hasAttribute("alt")) complain(node, "has no alt");
for (const node of document.querySelectorAll("[tabindex]")) if (Number(node.tabIndex) > 0) complain(node, "jumps the line of focus");
for (const node of shown("th")) if (!node.hasAttribute("scope")) complain(node, "a header without a scope");
for (const node of shown("ol, ul")) for (const child of node.children) if (child.localName !== "li") complain(child, "is in a list, and no item");
for (const node of shown("dl")) for (const child of node.children) if (!["dt", "dd", "div"].includes(child.localName)) complain(child, "is in a dl");
for (const node of shown("*")) {
  const scrolls = node.scrollWidth > node.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(node).overflowX);
  if (scrolls && node.tabIndex < 0 && !node.querySelector("a, button, input, [tabindex]")) complain(node, "scrolls, but not by keyboard");
}

// Contrast: every text against what is behind it
const canvas = document.createElement("canvas");
canvas.width = canvas.height = 1;
const pen = canvas.getContext("2d", { willReadFrequently: true });
function rgba(colour) {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
}
const over = ([r, g, b, a], under) => [r, g, b].map((value, at) => value * a + under[at] * (1 - a));
function groundOf(node) {
  const layers = [];
  for (let each = node; each; each = each.parentElement) {
    const layer = rgba(getComputedStyle(each).backgroundColor);
    if (layer[3] > 0) layers.push(layer);
    if (layer[3] === 1) break;
  }
  return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
}
const light = (rgb) => rgb.map((value) => value / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
function ratio(one, other) {
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Set();
while (texts.nextNode()) {
  const node = texts.currentNode.parentElement;
  if (!texts.currentNode.nodeValue.trim() || seen.has(node) || !isShown(node) || node.closest(":disabled, title, .unseen, .skip, noscript, option, script")) continue;
  seen.add(node);
  const style = getComputedStyle(node);
  const inDrawing = node.namespaceURI.endsWith("svg");
  let ground = groundOf(inDrawing ? node.closest("svg") : node);
  const isOnBox = inDrawing && node.parentElement.localName !== "svg"; // words and their ground are a group
  const box = isOnBox ? node.parentElement.querySelector("rect") : null;
  if (box) {
    const fill = rgba(getComputedStyle(box).fill);
    ground = over([...fill.slice(0, 3), fill[3] * Number(getComputedStyle(box).fillOpacity)], ground);
  }
  const ink = over(rgba(inDrawing ? style.fill : style.color), ground);
  const size = parseFloat(style.fontSize);
  const wanted = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
  const reached = ratio(ink, ground);
  if (reached < wanted) complain(node, `contrast ${reached.toFixed(2)}, and ${wanted} is asked for`);
}
return [...new Set(found)].slice(0, 20);
