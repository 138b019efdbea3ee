// Words for values: numbers, sizes, times, what a job does and what came of it.

export const ENDED = new Set(["succeeded", "failed", "cancelled"]);

export const count = (value) => value.toLocaleString("en");
export const figure = (value) => (Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4))));
export const many = (value, one, several = `${one}s`) => `${count(value)} ${value === 1 ? one : several}`;
export const joined = (...parts) => parts.filter(Boolean).join(" · ");
export const short = (id) => (id ? `…${id.slice(-6)}` : "");
export const plain = (name) => name.replaceAll("_", " ");
export const date = (time) => new Date(time).toLocaleString();
export const clock = (time) => new Date(time).toLocaleTimeString();

export function bytes(size) {
  const power = Math.min(4, Math.floor(Math.log10(Math.max(size, 1)) / 3));
  const value = size / 1000 ** power;
  return `${value.toFixed(power && value < 10 ? 1 : 0)} ${["B", "KB", "MB", "GB", "TB"][power]}`;
}

export function lasting(seconds) {
  if (seconds < 60) return `${Math.max(0, seconds).toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export const roughly = (seconds) => lasting(Math.round(seconds)).replace(".0", "").split(" ", 2).join(" ");

export function ago(time) {
  const seconds = (Date.now() - new Date(time)) / 1000;
  if (seconds > 86_400) return new Date(time).toLocaleDateString();
  return seconds < 20 ? "just now" : `${roughly(seconds)} ago`;
}

/** Any value in words: for fields that this page does not know, too. */
export function told(value) {
  if (value == null || value === "") return "–";
  if (typeof value === "number") return figure(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length ? value.map(told).join(", ") : "none";
  if (typeof value !== "object") return String(value);
  return joined(...Object.entries(value).filter(([, each]) => each != null).map(([name, each]) => `${plain(name)} ${told(each)}`)) || "none";
}

export function progressWords({ epoch, step, steps, loss, rate, unit, eta_seconds: left }) {
  const done = `${count(step)}${steps ? ` / ${count(steps)}` : ""}`;
  return joined(
    epoch != null && `epoch ${count(epoch)}`,
    unit === "cards" || unit === "tasks" ? `${done} ${unit}` : `step ${done}`,
    loss != null && `loss ${figure(loss)}`,
    rate != null && `${figure(Math.round(rate))} ${unit ?? "images"}/s`,
    left != null && `${roughly(left)} left`,
  );
}

const soFar = (progress) => ({ ...progress, rate: null, eta_seconds: null });

function resultWords(result) {
  const { validation_mae: error, epochs, recipe, mae, psnr, ssim, recommended_r: best, compared, flsd, table } = result;
  if (best != null) return `recommends r ${best}`;
  if (table?.length) {
    const measured = table.filter((row) => row.average).sort((one, other) => one.average.mean - other.average.mean);
    return joined(...measured.slice(0, 3).map(({ label, average }) => `${label} ${figure(average.mean)}`)) || "done";
  }
  if (compared?.length) {
    const { child_mae: own, ratio, on } = compared.at(-1);
    return `MAE ${figure(own)} on ${on}, ${figure(ratio)} times its parent's`;
  }
  if (result.precision != null && flsd != null) return `FLSD ${figure(flsd)} · precision ${figure(result.precision)}`;
  if (recipe) return `${many(recipe.count, "card")} from ${recipe.source} · r ${recipe.r}`;
  if (psnr != null && mae != null) return joined(`MAE ${figure(mae)}`, `PSNR ${figure(psnr)} dB`, ssim != null && `SSIM ${figure(ssim)}`);
  if (error != null) return joined(`validation MAE ${figure(error)}`, epochs != null && many(epochs, "epoch"));
  const first = Object.entries(result).find(([, value]) => typeof value === "number");
  return first ? `${plain(first[0])} ${figure(first[1])}` : "done";
}

/** What a job is about right now, in one line. */
export function jobWords({ state, result, progress, queue_position: position }) {
  if (state === "succeeded") return resultWords(result ?? {});
  if (state === "queued") return position == null ? "in the queue" : position > 1 ? `number ${position} in the queue` : "next in the queue";
  if (state === "waiting" && !progress.step) return `waiting for its ${progress.unit === "cards" ? "shards" : "tasks"}`;
  if (!progress.step) return ENDED.has(state) ? "stopped before the first step" : "starting";
  return ENDED.has(state) ? `stopped at ${progressWords(soFar(progress))}` : progressWords(progress);
}

export function eventWords({ kind, data, attempt }) {
  if (kind === "progress") return joined(`${Math.round(data.fraction * 100)} %`, progressWords(soFar(data)));
  const number = data.state === "running" && `attempt ${attempt}`;
  if (kind === "state") return joined(data.state, number, data.error?.title, data.reason);
  if (kind === "resume_point" && data.step != null) return `kept at step ${count(data.step)}`;
  return data.text ?? data.line ?? told(data);
}

const TONES = { running: "live", waiting: "live", succeeded: "good", failed: "bad", cancelled: "warn" };
export const tone = (state) => TONES[state] ?? "";
