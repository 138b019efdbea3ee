// Words for datasets, and what may be asked when one comes in.

import { h } from "./dom.js";
import { epochsField, fitting, form, networkField, queue } from "./forms.js";
import { count, joined, many } from "./words.js";

export const imagesOf = ({ splits }) => joined(...Object.entries(splits).map(([name, { count: number }]) => `${name} ${count(number)}`));
export const shapesOf = ({ splits }) => distinct(splits, ({ shape, dtype }) => `${shape} ${dtype}`);
export const labelsOf = ({ splits }) => distinct(splits, ({ classes }) => (classes == null ? "none" : many(classes, "class", "classes")));
export const shapeOf = ({ splits }) => Object.values(splits)[0].shape;

const distinct = (splits, tell) => [...new Set(Object.values(splits).map(tell))].join(", ");

/** The shape that images are brought to, and whether they are inverted. */
export function datasetFields() {
  const input = h("input", { type: "text", id: "input", maxlength: 20, placeholder: "as they are", autocomplete: "off" });
  const invert = h("input", { type: "checkbox", id: "invert" });
  const node = h("div", { class: "form" },
    h("div", {}, h("label", { for: "input" }, "Bring to shape"), input, h("p", { class: "hint" }, "Height x width x channels, such as 32x32x3.")),
    h("label", { class: "check", for: "invert" }, invert, h("span", {}, "Invert: dark ink on white becomes white on black")));
  return { node, values: (file) => ({ name: nameOf(file), input: input.value.trim(), invert: invert.checked || null }) };
}

const nameOf = (file) => file.name.replace(/\.(npz|zip|gz|mat|tar)$/g, "").slice(0, 200) || "images";

/** The form that trains a network on it. */
export const datasetWork = (dataset) => form([
  networkField(fitting(shapeOf(dataset))), epochsField(),
  { name: "name", label: "Name of the model", value: `${dataset.name.slice(0, 180)} network` },
], "Train", (values) => queue({ kind: "train", dataset: dataset.id, ...values }));
