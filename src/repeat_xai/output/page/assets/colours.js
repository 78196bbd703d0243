// Colours of numbers, from the same colour tables as the figures.

const COLOUR_TABLES = Object.fromEntries(
  Object.entries(JSON.parse(document.getElementById("colours").textContent)).map(([name, table]) => [name, bytesOf(table)]),
);

// The index of a value's red byte in its colour table.
function colourIndex(layer, value) {
  const [low, high] = layer.limits;
  const count = COLOUR_TABLES[layer.colours].length / 3;
  const index = high > low ? Math.floor(((value - low) / (high - low)) * count) : 0;
  return 3 * Math.max(0, Math.min(count - 1, index));
}

function cssColour(layer, value) {
  const index = colourIndex(layer, value);
  return `rgb(${COLOUR_TABLES[layer.colours].subarray(index, index + 3).join(" ")})`;
}

// The layer as a canvas with one pixel for each pixel of the map; transparent where there is nothing to draw.
function paintLayer(maps, layer) {
  const { width, height, values } = maps[layer.map];
  const where = layer.where && maps[layer.where].values;
  const table = COLOUR_TABLES[layer.colours];
  const pixels = new ImageData(width, height);
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i]) || (where && where[i] !== 1)) continue;
    const index = colourIndex(layer, values[i]);
    pixels.data.set([table[index], table[index + 1], table[index + 2], 255], 4 * i);
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

function paintColourBar(canvas, layer) {
  const table = COLOUR_TABLES[layer.colours];
  canvas.width = table.length / 3;
  const pixels = new ImageData(canvas.width, 1);
  for (let i = 0; i < canvas.width; i++) pixels.data.set([...table.subarray(3 * i, 3 * i + 3), 255], 4 * i);
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

// Where a value lies between two limits, from 0 to 1.
function fractionOf([low, high], value) {
  return high > low ? Math.max(0, Math.min(1, (value - low) / (high - low))) : 0;
}
