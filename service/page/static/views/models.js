import { byId, empty, fill, h } from "../dom.js";
import { mayWrite, start, wake } from "../frame.js";
import { linkTo } from "../links.js";
import { growing } from "../list.js";
import { dropZone } from "../upload.js";
import { ago, bytes, count } from "../words.js";

const architecture = h("input", { type: "text", id: "architecture", maxlength: 1000, placeholder: "blk_4_fil_64", autocomplete: "off" });
const input = h("input", { type: "text", id: "input", maxlength: 20, placeholder: "32x32x3", autocomplete: "off" });
const isBundle = ({ name }) => /\.zip$/i.test(name);
const zone = h("div", { class: "side" },
  dropZone({
    path: (file) => (isBundle(file) ? "/v1/bundles" : "/v1/models"), title: "Drop an autoencoder here", accept: ".safetensors,.pt,.pth,.onnx,.zip",
    hint: "safetensors, a .pt state dict, ONNX of any framework, or the bundle of another installation. It is checked before it is kept.",
    fields: (file) => (isBundle(file) ? { name: null } : { name: file.name.replace(/\.(safetensors|pt|pth|onnx)$/, "").slice(0, 200) || "model", architecture: architecture.value.trim(), input: input.value.trim() }),
    made: ({ model, learner, ...item }) => model ?? learner ?? item, onDone: wake,
  }),
  h("div", { class: "panel form" }, h("h2", {}, "What it is"),
    h("div", {}, h("label", { for: "architecture" }, "Architecture"), architecture, h("p", { class: "hint" }, "Empty: as the file's metadata says. An ONNX file needs none.")),
    h("div", {}, h("label", { for: "input" }, "Images"), input, h("p", { class: "hint" }, "Height x width x channels."))));

function draw(models) {
  if (!models.length) return empty("No models yet", "Drop one above, or train one on a ", h("a", { href: "/datasets" }, "dataset"), ".");
  const columns = ["Name", "Architecture", "Parameters", "Images", "Capsule", "Origin", "Size", "Added"];
  return h("div", { class: "table folds" }, h("table", { "aria-labelledby": "list-title" },
    h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col", class: name === "Parameters" || name === "Size" ? "num" : null }, name)))),
    h("tbody", {}, models.map((model) => h("tr", { "data-key": model.id },
      h("td", { "data-name": "Name" }, linkTo(model.id, model.name)),
      h("td", { "data-name": "Architecture" }, model.architecture_name),
      h("td", { "data-name": "Parameters", class: "num" }, count(model.parameters)),
      h("td", { "data-name": "Images" }, model.input),
      h("td", { "data-name": "Capsule" }, model.capsule ? "yes" : "none"),
      h("td", { "data-name": "Origin" }, model.job ? linkTo(model.job, model.origin) : model.origin),
      h("td", { "data-name": "Size", class: "num" }, bytes(model.size)),
      h("td", { "data-name": "Added" }, ago(model.created_at)))))));
}

const show = growing("/v1/models", draw);
start(async () => {
  if (mayWrite()) fill(byId("drop"), zone);
  await show();
  return 6000;
});
