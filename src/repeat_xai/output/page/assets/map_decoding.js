// Maps are decoded from 16-bit grey PNGs without a canvas, which may convert colours or have its values disturbed.

const MISSING_GREY = 65535;
const IDAT = 0x49444154; // the PNG chunks that hold pixels

function bytesOf(base64) {
  return Uint8Array.from(atob(base64.slice(base64.indexOf(",") + 1)), (letter) => letter.charCodeAt(0));
}

async function decodeMap(encoded) {
  const bytes = bytesOf(encoded.png);
  const file = new DataView(bytes.buffer);
  const [width, height] = [file.getUint32(16), file.getUint32(20)];
  const parts = [];
  for (let at = 8; at < bytes.length; at += 12 + file.getUint32(at)) {
    if (file.getUint32(at + 4) === IDAT) parts.push(bytes.subarray(at + 8, at + 8 + file.getUint32(at)));
  }
  const inflated = new Blob(parts).stream().pipeThrough(new DecompressionStream("deflate"));
  const rows = unfilteredRows(new Uint8Array(await new Response(inflated).arrayBuffer()), 2 * width, height);
  const values = new Float64Array(width * height);
  for (let i = 0; i < values.length; i++) {
    const grey = rows[2 * i] * 256 + rows[2 * i + 1];
    values[i] = grey === MISSING_GREY ? NaN : encoded.offset + encoded.scale * grey;
  }
  return { width, height, values, digits: encoded.digits };
}

// PNG filters: the first byte of a row says whether its bytes are stored as they are, or as differences from the left
// neighbour, the upper one, the mean of both, or the likeliest of three neighbours.
function unfilteredRows(bytes, stride, height) {
  const rows = new Uint8Array(stride * height);
  for (let row = 0; row < height; row++) {
    const filter = bytes[row * (stride + 1)];
    for (let i = 0; i < stride; i++) {
      const at = row * stride + i;
      const left = i < 2 ? 0 : rows[at - 2];
      const up = row === 0 ? 0 : rows[at - stride];
      const corner = i < 2 || row === 0 ? 0 : rows[at - stride - 2];
      const guess = [0, left, up, (left + up) >> 1, filter === 4 ? likeliestNeighbour(left, up, corner) : 0][filter];
      rows[at] = bytes[at + row + 1] + guess;
    }
  }
  return rows;
}

function likeliestNeighbour(left, up, corner) {
  const [a, b, c] = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs);
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

// Decodes all maps of a method; an uncertainty that is p(1 − p) is not stored but computed here.
async function decodeMaps(encodedMaps) {
  const maps = {};
  await Promise.all(Object.entries(encodedMaps).map(async ([name, map]) => (maps[name] = await decodeMap(map))));
  maps.uncertainty ??= { ...maps.importance, values: maps.importance.values.map((p) => p * (1 - p)) };
  return maps;
}

function numberText(value, digits) {
  if (Number.isNaN(value)) return "none";
  return digits > 6 ? value.toPrecision(4) : value.toFixed(Math.min(4, digits));
}
