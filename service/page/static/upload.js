// Files by drop or by choice: one after the other, each with its bar and, where it was refused, the reason.

import { newKey, query, tell } from "./api.js";
import { button, h } from "./dom.js";
import { address } from "./links.js";
import { bytes, figure } from "./words.js";
import { zipOf } from "./zip.js";

const MOST_FILES = 20; // at once, each for itself
const MOST_IMAGES = 20_000;
const MOST_BYTES = 2 * 1024 ** 3; // of images that are packed together here
const IMAGE = /\.(png|jpe?g|webp)$/i;

/** A place to drop files. `path` (that of the file, where it is a function) and `fields()` are asked when a file goes,
 *  `made(answer)` is what came of it, `onDone(item)` is told of that; with `packs` several images are one dataset. */
export function dropZone({ path, title, hint, accept, packs = false, fields = () => ({}), made = (item) => item, onDone = () => {} }) {
  const list = h("ul", { class: "uploads", "aria-live": "polite" });
  const input = h("input", { type: "file", id: "file", multiple: true, accept, on: { change: () => take(input.files) } });
  const zone = h("div", { class: "drop", on: { dragover, dragleave: () => (zone.dataset.over = "false"), drop } },
    h("strong", {}, title), h("span", { class: "small" }, hint), input, h("label", { for: "file" }, "Choose a file"));
  let line = Promise.resolve();

  function dragover(event) {
    event.preventDefault();
    zone.dataset.over = "true";
  }

  function drop(event) {
    event.preventDefault();
    zone.dataset.over = "false";
    take(event.dataTransfer.files);
  }

  function take(files) {
    const chosen = [...files];
    input.value = "";
    const areImages = packs && chosen.length > 1 && chosen.every(({ name }) => IMAGE.test(name));
    if (areImages && chosen.length <= MOST_IMAGES && chosen.reduce((sum, { size }) => sum + size, 0) <= MOST_BYTES) {
      line = line.then(() => together(chosen));
      return;
    }
    if (chosen.length > MOST_FILES) return refuse(chosen.length);
    for (const file of chosen) line = line.then(() => one(file));
  }

  async function together(files) {
    const name = `${files.length} images.zip`;
    const words = h("p", { class: "small soft" });
    const entry = h("li", {}, h("strong", {}, name), words);
    list.prepend(entry);
    const packed = await zipOf(files, (done) => (words.textContent = `packing ${done} of ${files.length}`));
    entry.remove();
    await one(new File([packed], name));
  }

  function refuse(number) {
    const words = `Those are ${number} files, and up to ${MOST_FILES} go at once. ${packs ? "Images alone are packed into one dataset; for labels, drop a zip with a folder a label." : ""}`;
    list.prepend(h("li", {}, h("p", { role: "alert" }, h("strong", { class: "why" }, "Nothing was sent. "), words)));
  }

  async function one(file) {
    const words = h("p", { class: "small soft" }, "waiting");
    const bar = h("progress", { max: 1, value: 0, "aria-label": `Upload of ${file.name}` });
    const entry = h("li", {}, h("strong", {}, h("bdi", {}, file.name)), bar, words);
    list.prepend(entry);
    try {
      const to = typeof path === "function" ? path(file) : path;
      const item = made(await send(`${to}${query({ name: file.name.slice(0, 200), ...fields(file) })}`, file, entry, bar, words));
      bar.remove();
      words.replaceChildren(`${bytes(file.size)}, ready: `, h("a", { href: address(item.id) }, h("bdi", {}, item.name)));
      onDone(item);
    } catch (error) {
      bar.remove();
      words.className = "small";
      words.setAttribute("role", "alert");
      words.replaceChildren(h("strong", { class: "why" }, `${error.title} `), error.detail);
    }
  }

  return h("div", { class: "dropping" }, zone, list);
}

/** By XMLHttpRequest: fetch does not tell how much has gone. */
function send(path, file, entry, bar, words) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    const stop = button("Stop", async () => request.abort(), { class: "bare" });
    entry.append(stop);
    const end = (settle, value) => {
      stop.remove();
      settle(value);
    };
    request.upload.onprogress = ({ loaded, total }) => {
      bar.value = total ? loaded / total : 0;
      words.textContent = loaded < total ? `${bytes(loaded)} of ${bytes(total)}, ${figure(Math.floor((100 * loaded) / total))} %` : "sent; it is being checked";
    };
    request.onload = () => {
      const body = read(request.responseText);
      if (request.status < 300) return end(done, body);
      if (request.status === 401) tell("service-locked", body.detail);
      end(fail, { title: `${body.title ?? "It was refused"}.`, detail: body.detail ?? `The service answered ${request.status}.` });
    };
    request.onerror = () => end(fail, { title: "It broke off.", detail: "The service is not reachable, or it closed the door before the file was through. Nothing was kept." });
    request.onabort = () => end(fail, { title: "Stopped.", detail: "Nothing was kept." });
    request.open("POST", path);
    request.setRequestHeader("Idempotency-Key", newKey());
    request.send(file);
  });
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
