// A 16-bit grey PNG → its numbers, without a canvas: a canvas may convert colours, or be disturbed on purpose.

const NOTHING = 65535;
const IDAT = 0x49444154;

function bytesOf(base64) {
  return Uint8Array.from(atob(base64.slice(base64.indexOf(",") + 1)), (letter) => letter.charCodeAt(0));
}

async function unpacked(packed) {
  const bytes = bytesOf(packed.png);
  const file = new DataView(bytes.buffer);
  const [width, height] = [file.getUint32(16), file.getUint32(20)];
  const parts = [];
  for (let at = 8; at < bytes.length; at += 12 + file.getUint32(at)) {
    if (file.getUint32(at + 4) === IDAT) parts.push(bytes.subarray(at + 8, at + 8 + file.getUint32(at)));
  }
  const inflated = new Blob(parts).stream().pipeThrough(new DecompressionStream("deflate"));
  const rows = unfiltered(new Uint8Array(await new Response(inflated).arrayBuffer()), 2 * width, height);
  const values = new Float64Array(width * height);
  for (let i = 0; i < values.length; i++) {
    const grey = rows[2 * i] * 256 + rows[2 * i + 1];
    values[i] = grey === NOTHING ? NaN : packed.offset + packed.scale * grey;
  }
  return { width, height, values, digits: packed.digits };
}

// Each row begins with how its bytes were written: as they are, or less the left, upper, mean or likeliest neighbour.
function unfiltered(bytes, stride, height) {
  const rows = new Uint8Array(stride * height);
  for (let row = 0; row < height; row++) {
    const kind = bytes[row * (stride + 1)];
    for (let i = 0; i < stride; i++) {
      const at = row * stride + i;
      const left = i < 2 ? 0 : rows[at - 2];
      const up = row === 0 ? 0 : rows[at - stride];
      const corner = i < 2 || row === 0 ? 0 : rows[at - stride - 2];
      const guess = [0, left, up, (left + up) >> 1, kind === 4 ? likeliest(left, up, corner) : 0][kind];
      rows[at] = bytes[at + row + 1] + guess;
    }
  }
  return rows;
}

function likeliest(left, up, corner) {
  const [a, b, c] = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs);
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

// Uncertainty that is p(1 − p) is not carried.
function uncertaintyOf(importance) {
  return { ...importance, values: importance.values.map((p) => p * (1 - p)) };
}

async function unpackedAll(maps) {
  const found = {};
  await Promise.all(Object.entries(maps).map(async ([name, map]) => (found[name] = await unpacked(map))));
  found.uncertainty ??= uncertaintyOf(found.importance);
  return found;
}

function written(value, digits) {
  if (Number.isNaN(value)) return "none";
  return digits > 6 ? value.toPrecision(4) : value.toFixed(Math.min(4, digits));
}
