// Many images as one file: a zip that only stores, since images are compressed already.

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});
const UTF8_NAMES = 0x0800;
const FIRST_DAY = 0x21; // 1980-01-01: the same images make the same bytes, whenever they are dropped

function checksum(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/** Numbers of 2 or 4 bytes, the lowest byte first. */
function record(...fields) {
  const bytes = fields.flatMap(([value, size]) => Array.from({ length: size }, (_, place) => (value >>> (8 * place)) & 0xff));
  return new Uint8Array(bytes);
}

/** Names are numbered where two files have the same one, as from two folders. `onFile(n)` tells how far it is. */
export async function zipOf(files, onFile = () => {}) {
  const [parts, directory, seen] = [[], [], new Set()];
  let [offset, directorySize] = [0, 0];
  for (const [place, file] of files.entries()) {
    const name = new TextEncoder().encode(seen.has(file.name) ? `${place}-${file.name}` : file.name);
    seen.add(file.name);
    const sum = checksum(new Uint8Array(await file.arrayBuffer()));
    const shared = [[20, 2], [UTF8_NAMES, 2], [0, 2], [0, 2], [FIRST_DAY, 2], [sum, 4], [file.size, 4], [file.size, 4], [name.length, 2], [0, 2]];
    const local = record([0x04034b50, 4], ...shared);
    const central = record([0x02014b50, 4], [20, 2], ...shared, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]);
    parts.push(local, name, file);
    directory.push(central, name);
    offset += local.length + name.length + file.size;
    directorySize += central.length + name.length;
    onFile(place + 1);
  }
  const end = record([0x06054b50, 4], [0, 2], [0, 2], [files.length, 2], [files.length, 2], [directorySize, 4], [offset, 4], [0, 2]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}
