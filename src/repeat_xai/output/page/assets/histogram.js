// The histogram of a layer: how many pixels have which value, with counts on an axis and with the layer's cuts.

const BINS = 40;
const [PLOT_WIDTH, PLOT_HEIGHT] = [320, 90];
const AXIS_WIDTH = 40; // room for the counts

function svgElement(name, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function countPixels(maps, layer) {
  const counts = new Array(BINS).fill(0);
  const where = layer.where && maps[layer.where].values;
  maps[layer.histogram_map].values.forEach((value, i) => {
    if (Number.isNaN(value) || (where && where[i] !== 1)) return;
    const bin = Math.floor(fractionOf(layer.histogram_limits, value) * BINS + 1e-5);
    counts[Math.min(BINS - 1, bin)] += 1;
  });
  return counts;
}

// Round counts from 0 upwards, at most five of them.
function countTicks(largest) {
  const power = 10 ** Math.floor(Math.log10(largest));
  const step = [0.5, 1, 2, 5].map((factor) => factor * power).find((size) => size >= 1 && largest / size < 5) ?? largest;
  return Array.from({ length: Math.floor(largest / step) + 1 }, (_, i) => i * step);
}

function drawHistogram(figure, maps, layer) {
  const counts = countPixels(maps, layer);
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return figure.replaceChildren();
  const largest = Math.max(...counts, 1);
  const [low, high] = layer.histogram_limits;
  const viewBox = `${-AXIS_WIDTH} -16 ${AXIS_WIDTH + PLOT_WIDTH + 8} ${PLOT_HEIGHT + 36}`;
  const name = `Histogram of ${layer.histogram_title} over ${total} pixels`;
  const svg = svgElement("svg", { viewBox, role: "img", "aria-label": name });
  for (const count of countTicks(largest)) {
    const y = PLOT_HEIGHT * (1 - count / largest);
    svg.append(svgElement("line", { class: "grid", x1: 0, x2: PLOT_WIDTH, y1: y, y2: y }));
    svg.append(svgElement("text", { class: "tick count end", x: -5, y: y + 3.5 }, count.toLocaleString("en")));
  }
  counts.forEach((count, i) => {
    const middle = low + ((i + 0.5) / BINS) * (high - low);
    const height = (count / largest) * PLOT_HEIGHT;
    const [x, y] = [(i * PLOT_WIDTH) / BINS + 0.5, PLOT_HEIGHT - height];
    const bar = svgElement("rect", { x, y, width: PLOT_WIDTH / BINS - 1, height, fill: barColour(layer, middle), class: "bin" });
    const share = ((100 * count) / total).toFixed(1);
    bar.append(svgElement("title", {}, `${middle.toPrecision(3)}: ${count} pixels, ${share} % of them`));
    svg.append(bar);
  });
  svg.append(svgElement("line", { class: "axis", x1: 0, x2: PLOT_WIDTH, y1: PLOT_HEIGHT, y2: PLOT_HEIGHT }));
  for (const [value, text] of layer.cuts) {
    const x = fractionOf(layer.histogram_limits, value) * PLOT_WIDTH;
    svg.append(svgElement("line", { class: "cut", x1: x, x2: x, y1: -2, y2: PLOT_HEIGHT }), textAt(x, -6, text));
  }
  const shares = [0, 0.25, 0.5, 0.75, 1].map((value) => [value, String(value)]);
  for (const [value, text] of layer.histogram_map === layer.map ? layer.ticks : shares) {
    svg.append(textAt(fractionOf(layer.histogram_limits, value) * PLOT_WIDTH, PLOT_HEIGHT + 14, text));
  }
  const caption = document.createElement("figcaption");
  caption.textContent = `Number of pixels by ${layer.histogram_title}`;
  figure.replaceChildren(caption, svg);
}

// The colour of the layer; for a verdict, whose histogram is of votes, the colour of what so many votes decide.
function barColour(layer, value) {
  if (layer.histogram_map === layer.map) return cssColour(layer, value);
  const [[unimportant], [important]] = layer.cuts;
  return cssColour(layer, value >= important ? 1 : value <= unimportant ? -1 : 0);
}

// A number on the axis or above a cut; near the ends it is aligned inwards so that nothing is cut off.
function textAt(x, y, text) {
  const anchor = x < 12 ? "start" : x > PLOT_WIDTH - 12 ? "end" : "middle";
  return svgElement("text", { class: `tick ${anchor}`, x, y }, text);
}
