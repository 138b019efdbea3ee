import { byId, empty, fill, h } from "../dom.js";
import { mayWrite, start, wake } from "../frame.js";
import { linkTo } from "../links.js";
import { growing } from "../list.js";
import { datasetFields, imagesOf, labelsOf, shapesOf } from "../datasets.js";
import { dropZone } from "../upload.js";
import { ago, bytes } from "../words.js";

const asked = datasetFields();
const zone = h("div", { class: "side" },
  dropZone({
    path: "/v1/datasets", packs: true, title: "Drop images here", hint: "Any number of PNG, JPEG or WebP, an npz (x, or x_train and x_test), a zip of images whose folders are labels, or what MNIST, CIFAR and SVHN are published as.",
    fields: asked.values, onDone: wake,
  }),
  h("div", { class: "panel" }, h("h2", {}, "What to make of them"), asked.node));

function draw(datasets) {
  if (!datasets.length) return empty("No datasets yet", "Drop one above, or run the sample on the ", h("a", { href: "/" }, "overview"), ".");
  return h("div", { class: "table folds" }, h("table", { "aria-labelledby": "list-title" },
    h("thead", {}, h("tr", {}, ["Name", "Images", "Shape", "Labels", "Size", "Added"].map((name) => h("th", { scope: "col", class: name === "Size" ? "num" : null }, name)))),
    h("tbody", {}, datasets.map((dataset) => h("tr", { "data-key": dataset.id },
      h("td", { "data-name": "Name" }, linkTo(dataset.id, dataset.name)),
      h("td", { "data-name": "Images" }, imagesOf(dataset)),
      h("td", { "data-name": "Shape" }, shapesOf(dataset)),
      h("td", { "data-name": "Labels" }, labelsOf(dataset)),
      h("td", { "data-name": "Size", class: "num" }, bytes(dataset.size)),
      h("td", { "data-name": "Added" }, ago(dataset.created_at)))))));
}

const show = growing("/v1/datasets", draw);
start(async () => {
  if (mayWrite()) fill(byId("drop"), zone);
  await show();
  return 6000;
});
