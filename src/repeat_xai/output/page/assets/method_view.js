// One method's explanation of a photo: the picture, its colour scale, its histogram, and the values of one pixel.

const VERDICTS = { "-1": "certainly unimportant", 0: "undecided", 1: "certainly important" };
const SMALLEST_SIDE = 720; // the longer side of the canvas, in pixels, so that small photos are not drawn coarsely
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

async function createMethodView(content, view, photo, onPoint) {
  const node = document.getElementById("tile").content.cloneNode(true).firstElementChild;
  const part = (name) => node.querySelector(name);
  const maps = await decodeMaps(view.maps);
  const { width, height } = maps.importance;
  const [photoHeight, photoWidth] = content.size;
  const [left, top, right, bottom] = content.box;
  const canvas = part(".picture");
  const enlargement = Math.max(1, SMALLEST_SIDE / Math.max(photo.width, photo.height));
  [canvas.width, canvas.height] = [photo.width * enlargement, photo.height * enlargement].map(Math.round);
  // The part of the canvas that the encoder sees: left, top, width and height.
  const box = [
    (left / photoWidth) * canvas.width,
    (top / photoHeight) * canvas.height,
    ((right - left) / photoWidth) * canvas.width,
    ((bottom - top) / photoHeight) * canvas.height,
  ];
  const overlays = {};
  let layer = view.layers[0];
  let pixel = null; // column and row of the map; null outside what the encoder sees
  let point = [0, 0]; // the same place as fractions of the photo's width and height

  part(".method").textContent = view.title;
  part(".budget").textContent = view.budget;
  part(".summary").textContent = view.summary;
  part(".movement").textContent = view.movement;
  part(".movement").hidden = view.movement === "";
  part(".movement").classList.toggle("warning", view.warns);
  node.style.setProperty("--ratio", canvas.width / canvas.height);
  addLinks(part(".links"), view.links);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "This picture (PNG)";
  button.addEventListener("click", () => {
    const stem = content.name.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}_-]+/gu, "_");
    const caption = `${content.name}, ${view.title}`;
    saveAsPng(pictureWithScale(canvas, part(".bar"), layer, caption), `${stem}.${layer.kind}.png`);
  });
  part(".links").append(button);
  for (const [key, value] of view.provenance) {
    const row = part(".provenance tbody").insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    key.split(/(?<=\.)/).forEach((word) => head.append(word, document.createElement("wbr")));
    row.append(head);
    row.insertCell().textContent = value;
  }

  // The photo in grey under the layer; outside the encoder's part the photo is faded and keeps its colours.
  function draw(opacity) {
    const pen = canvas.getContext("2d");
    pen.globalAlpha = 1;
    pen.drawImage(photo, 0, 0, canvas.width, canvas.height);
    const seesWholePhoto = box[2] >= canvas.width - 1 && box[3] >= canvas.height - 1;
    if (!seesWholePhoto) {
      pen.globalAlpha = 0.65;
      pen.fillStyle = getComputedStyle(document.body).backgroundColor;
      pen.beginPath();
      pen.rect(0, 0, canvas.width, canvas.height);
      pen.rect(...box);
      pen.fill("evenodd");
    }
    pen.globalAlpha = Math.min(1, 2 * opacity);
    pen.globalCompositeOperation = "saturation";
    pen.fillStyle = "#808080";
    pen.fillRect(...box);
    pen.globalCompositeOperation = "source-over";
    pen.globalAlpha = opacity;
    pen.imageSmoothingEnabled = layer.map !== "verdict" && !layer.where;
    pen.imageSmoothingQuality = "high";
    overlays[layer.kind] ??= paintLayer(maps, layer);
    pen.drawImage(overlays[layer.kind], ...box);
    pen.globalAlpha = 1;
    pen.imageSmoothingEnabled = true;
    if (!seesWholePhoto) drawFrame(pen);
  }

  // White dashes on a dark line are visible on light and on dark photos.
  function drawFrame(pen) {
    for (const [colour, dashes] of [["#333", []], ["#fff", [6, 6]]]) {
      pen.strokeStyle = colour;
      pen.setLineDash(dashes);
      pen.lineWidth = 1.5;
      pen.strokeRect(...box);
    }
  }

  function showLayer(kind, opacity) {
    layer = view.layers.find((candidate) => candidate.kind === kind);
    draw(opacity);
    part(".layer-title").textContent = layer.title;
    part(".layer-note").textContent = layer.note;
    paintColourBar(part(".bar"), layer);
    part(".bar").setAttribute("aria-label", `Colours from ${layer.ticks[0][1]} to ${layer.ticks.at(-1)[1]}`);
    part(".ticks").replaceChildren(...layer.ticks.map(tickLabel));
    part(".ticks").classList.toggle("verdicts", layer.map === "verdict");
    const hasValues = !maps[layer.map].values.every(Number.isNaN);
    for (const name of [".colours", ".ticks"]) part(name).hidden = !hasValues;
    drawHistogram(part(".counts"), maps, layer);
    canvas.setAttribute("aria-label", `${layer.title} over ${content.name}, ${view.title}`);
    movePointer();
  }

  function tickLabel([value, text]) {
    const label = document.createElement("span");
    label.textContent = text;
    const fraction = fractionOf(layer.limits, value);
    label.style.left = `${100 * fraction}%`;
    label.className = fraction < 0.04 ? "start" : fraction > 0.96 ? "end" : "";
    return label;
  }

  // From fractions of the photo's width and height to the map's pixel there; null outside what the encoder sees.
  function pixelAt([x, y]) {
    const column = Math.floor(((x * photoWidth - left) / (right - left)) * width);
    const row = Math.floor(((y * photoHeight - top) / (bottom - top)) * height);
    return column >= 0 && column < width && row >= 0 && row < height ? [column, row] : null;
  }

  function centreOf([column, row]) {
    return [
      (left + ((column + 0.5) / width) * (right - left)) / photoWidth,
      (top + ((row + 0.5) / height) * (bottom - top)) / photoHeight,
    ];
  }

  // Reads the pixel at a place of the photo, shows its values, and returns them as a sentence.
  function read(place) {
    pixel = pixelAt(place);
    point = pixel ? centreOf(pixel) : place;
    const mark = part(".mark");
    mark.hidden = false;
    mark.style.left = `${100 * point[0]}%`;
    mark.style.top = `${100 * point[1]}%`;
    part(".reading").replaceChildren(...readings().flatMap(definition));
    movePointer();
    return `${view.title}: ${readings().map(([name, text]) => `${name} ${text}`).join("; ")}`;
  }

  // Name, text and number of everything that is known about the pixel.
  function readings() {
    const index = pixel && pixel[1] * width + pixel[0];
    const value = (name) => (pixel ? maps[name].values[index] : NaN);
    const number = (label, name, limit = "") => {
      const text = pixel ? numberText(value(name), maps[name].digits) : "–";
      return [label, Number.isNaN(value(name)) ? text : text + limit, value(name)];
    };
    const place = [photoWidth, photoHeight].map((size, i) => Math.min(size - 1, Math.max(0, Math.floor(point[i] * size))));
    const rows = [
      ["input column, row", pixel ? pixel.join(", ") : "not seen", NaN],
      number("importance", "importance"),
      number("uncertainty", "uncertainty", maps.vote_share ? ` of at most ${view.layers[1].limits[1]}` : ""),
    ];
    if (maps.vote_share) {
      rows.push(number("share of votes", "vote_share"));
      rows.push(["verdict", pixel ? VERDICTS[value("verdict")] : "–", value("verdict")]);
    } else {
      rows.push(["in the more certain half", pixel ? (value("certain") === 1 ? "yes" : "no") : "–", value("certain")]);
    }
    return [...rows, ["photo column, row", place.join(", "), NaN]];
  }

  function definition([name, text, value]) {
    const [term, description] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    description.textContent = text;
    if (!Number.isNaN(value)) description.dataset.value = value;
    return [term, description];
  }

  // Marks the pixel's value on the colour bar.
  function movePointer() {
    const pointer = part(".pointer");
    const value = pixel ? maps[layer.map].values[pixel[1] * width + pixel[0]] : NaN;
    pointer.hidden = Number.isNaN(value) || layer.map === "verdict";
    if (!pointer.hidden) pointer.style.left = `${100 * fractionOf(layer.limits, value)}%`;
  }

  canvas.addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const distance = event.shiftKey ? 10 : 1;
    const start = pixel ?? [width >> 1, height >> 1];
    const moved = [width, height].map((size, i) => Math.max(0, Math.min(size - 1, start[i] + distance * step[i])));
    onPoint(centreOf(moved), true);
  });
  const pointAt = (event) => {
    const area = canvas.getBoundingClientRect();
    onPoint([(event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height], false);
  };
  canvas.addEventListener("pointerdown", pointAt);
  canvas.addEventListener("pointermove", pointAt);

  return { node, draw, showLayer, read, layers: view.layers };
}

function addLinks(parent, links) {
  for (const { label, href } of links) {
    const link = document.createElement("a");
    link.href = href;
    link.download = "";
    link.textContent = label;
    parent.append(link);
  }
}
