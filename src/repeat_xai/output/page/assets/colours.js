// Numbers → colours, by the same tables as the figures.

const TABLES = Object.fromEntries(
  Object.entries(JSON.parse(document.getElementById("colours").textContent)).map(([name, table]) => [name, bytesOf(table)]),
);

function colourAt(layer, value) {
  const table = TABLES[layer.colours];
  const [low, high] = layer.limits;
  const count = table.length / 3;
  const place = high > low ? Math.floor(((value - low) / (high - low)) * count) : 0;
  return 3 * Math.max(0, Math.min(count - 1, place));
}

function css(layer, value) {
  const at = colourAt(layer, value);
  return `rgb(${TABLES[layer.colours].subarray(at, at + 3).join(" ")})`;
}

function painted(maps, layer) {
  const { width, height, values } = maps[layer.map];
  const where = layer.where && maps[layer.where].values;
  const table = TABLES[layer.colours];
  const pixels = new ImageData(width, height);
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i]) || (where && where[i] !== 1)) continue;
    const at = colourAt(layer, values[i]);
    pixels.data.set([table[at], table[at + 1], table[at + 2], 255], 4 * i);
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

function paintBar(canvas, layer) {
  const table = TABLES[layer.colours];
  canvas.width = table.length / 3;
  const pixels = new ImageData(canvas.width, 1);
  for (let i = 0; i < canvas.width; i++) pixels.data.set([...table.subarray(3 * i, 3 * i + 3), 255], 4 * i);
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

// Where on its scale a value lies, from 0 to 1.
function placeOn([low, high], value) {
  return high > low ? Math.max(0, Math.min(1, (value - low) / (high - low))) : 0;
}
