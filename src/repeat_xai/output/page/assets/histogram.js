// How many pixels have which value, with the cuts.

const BINS = 40;
const [WIDE, TALL] = [320, 90];

function element(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function counted(maps, layer) {
  const counts = new Array(BINS).fill(0);
  const where = layer.where && maps[layer.where].values;
  maps[layer.counted].values.forEach((value, i) => {
    if (Number.isNaN(value) || (where && where[i] !== 1)) return;
    counts[Math.min(BINS - 1, Math.floor(placeOn(layer.range, value) * BINS + 1e-5))] += 1;
  });
  return counts;
}

function drawHistogram(figure, maps, layer) {
  const counts = counted(maps, layer);
  const all = counts.reduce((sum, count) => sum + count, 0) || 1;
  const most = Math.max(...counts, 1);
  const [low, high] = layer.range;
  const label = `Histogram of ${layer.counted_title} over ${all} pixels`;
  const svg = element("svg", { viewBox: `-4 -16 ${WIDE + 8} ${TALL + 36}`, role: "img", "aria-label": label });
  counts.forEach((count, i) => {
    const middle = low + ((i + 0.5) / BINS) * (high - low);
    const tall = (count / most) * TALL;
    const bar = element("rect", {
      x: (i * WIDE) / BINS + 0.5, y: TALL - tall, width: WIDE / BINS - 1, height: tall, fill: barColour(layer, middle), class: "bin",
    });
    bar.append(element("title", {}, `${middle.toPrecision(3)}: ${((100 * count) / all).toFixed(1)} % of the pixels`));
    svg.append(bar);
  });
  svg.append(element("line", { class: "axis", x1: 0, x2: WIDE, y1: TALL, y2: TALL }));
  for (const [value, text] of layer.cuts) {
    const x = placeOn(layer.range, value) * WIDE;
    svg.append(element("line", { class: "cut", x1: x, x2: x, y1: -2, y2: TALL }), words(x, -6, text));
  }
  const ends = layer.counted === layer.map ? layer.ticks : [0, 0.25, 0.5, 0.75, 1].map((v) => [v, String(v)]);
  for (const [value, text] of ends) {
    svg.append(words(placeOn(layer.range, value) * WIDE, TALL + 14, text));
  }
  const caption = document.createElement("figcaption");
  caption.textContent = `Pixels by ${layer.counted_title}`;
  figure.replaceChildren(caption, svg);
}

function barColour(layer, value) {
  if (layer.counted === layer.map) return css(layer, value);
  const [[unimportant], [important]] = layer.cuts;
  return css(layer, value >= important ? 1 : value <= unimportant ? -1 : 0);
}

// At the ends of the axis words are drawn inwards.
function words(x, y, text) {
  const anchor = x < 12 ? "start" : x > WIDE - 12 ? "end" : "middle";
  return element("text", { class: `tick ${anchor}`, x, y }, text);
}
