// Nodes out of words. What comes from the API becomes text and attribute values, never markup: strangers wrote it.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "rect", "circle", "line", "text", "title"]);

/** h("a", {href: "/", on: {click}}, "text", [more]); null, undefined and false are left out, of both. */
export function h(tag, props = {}, ...children) {
  const isLinkInDrawing = tag === "svg:a";
  const node = DRAWN.has(tag) || isLinkInDrawing
    ? document.createElementNS(SVG, isLinkInDrawing ? "a" : tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value == null || value === false) continue;
    if (name === "on") listen(node, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...flat(children));
  return node;
}

function listen(node, handlers) {
  node.listens = true;
  for (const [event, handler] of Object.entries(handlers)) node.addEventListener(event, handler);
}

const flat = (children) => children.flat(Infinity).filter((child) => child != null && child !== false);

/** Makes the children of a node what they should be. What is the same stays: focus, scroll, what was typed. */
export function fill(parent, ...children) {
  parent.removeAttribute("aria-busy");
  const wanted = flat(children).map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
  wanted.forEach((child, place) => {
    const there = parent.childNodes[place];
    if (!there) parent.append(child);
    else turn(there, child);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

/** One node into another. Those that listen are exchanged: what they do changes with what they show. */
function turn(old, next) {
  if (old.isEqualNode(next)) return;
  const isAlike = old.nodeName === next.nodeName && old.dataset?.key === next.dataset?.key;
  if (!isAlike || old.listens || next.listens) return exchange(old, next);
  if (old.nodeType === Node.TEXT_NODE) return void (old.nodeValue = next.nodeValue);
  for (const { name } of [...old.attributes])
    if (!next.hasAttribute(name) && !(name === "open" && old.localName === "details")) old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  fill(old, ...next.childNodes);
}

function exchange(old, next) {
  const hadFocus = old === document.activeElement;
  old.replaceWith(next);
  if (hadFocus) next.focus();
}

export const byId = (id) => document.getElementById(id);

/** A button that waits for what it started, and says what went wrong where everybody looks. */
export function button(words, act, props = {}) {
  const node = h("button", { type: "button", ...props, on: { click: pressed } }, words);
  async function pressed() {
    if (node.disabled) return;
    node.disabled = true;
    try {
      await act(node);
    } catch (error) {
      say(error.detail ?? error.message);
    }
    node.disabled = false;
  }
  return node;
}

/** A line at the foot of the page, for some seconds. */
export function say(words) {
  const toast = byId("toast");
  toast.textContent = words;
  toast.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => (toast.hidden = true), 8000);
}

export const empty = (title, ...words) => h("div", { class: "empty" }, h("strong", {}, title), ...words);

/** Title and content of a part of a view. */
export function part(title, ...content) {
  if (!flat(content).length) return null;
  const id = `part-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return h("section", { class: "part", "aria-labelledby": id, "data-key": id },
    h("div", { class: "head" }, h("h2", { id }, title)), ...content);
}
