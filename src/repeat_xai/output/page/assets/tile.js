// One method's findings about one photo: the picture, its scale, its histogram, and the pixel that is read.

const VERDICTS = { "-1": "certainly unimportant", 0: "undecided", 1: "certainly important" };
const SMALLEST = 720;

async function tile(content, view, photo, whenRead) {
  const node = document.getElementById("tile").content.cloneNode(true).firstElementChild;
  const part = (name) => node.querySelector(name);
  const maps = await unpackedAll(view.maps);
  const { width, height } = maps.importance;
  const [tall, wide] = content.size;
  const [left, top, right, bottom] = content.box;
  const canvas = part(".picture");
  const larger = Math.max(1, SMALLEST / Math.max(photo.width, photo.height));
  [canvas.width, canvas.height] = [photo.width * larger, photo.height * larger].map(Math.round);
  const box = [
    (left / wide) * canvas.width,
    (top / tall) * canvas.height,
    ((right - left) / wide) * canvas.width,
    ((bottom - top) / tall) * canvas.height,
  ];
  const overlays = {};
  let [layer, pixel] = [view.layers[0], null];

  part(".method").textContent = view.title;
  part(".budget").textContent = view.budget;
  node.style.setProperty("--ratio", canvas.width / canvas.height);
  addLinks(part(".links"), view.links);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "This picture (PNG)";
  button.addEventListener("click", () => {
    const stem = content.name.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}_-]+/gu, "_");
    save(exported(canvas, part(".bar"), layer, `${content.name}, ${view.title}`), `${stem}.${layer.kind}.png`);
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

  function draw(strength) {
    const pen = canvas.getContext("2d");
    pen.globalAlpha = 1;
    pen.drawImage(photo, 0, 0, canvas.width, canvas.height);
    const whole = box[2] >= canvas.width - 1 && box[3] >= canvas.height - 1;
    if (!whole) {
      pen.globalAlpha = 0.65;
      pen.fillStyle = getComputedStyle(document.body).backgroundColor;
      pen.beginPath();
      pen.rect(0, 0, canvas.width, canvas.height);
      pen.rect(...box);
      pen.fill("evenodd");
    }
    pen.globalAlpha = Math.min(1, 2 * strength);
    pen.globalCompositeOperation = "saturation";
    pen.fillStyle = "#808080";
    pen.fillRect(...box);
    pen.globalCompositeOperation = "source-over";
    pen.globalAlpha = strength;
    pen.imageSmoothingEnabled = layer.map !== "verdict" && !layer.where;
    pen.imageSmoothingQuality = "high";
    overlays[layer.kind] ??= painted(maps, layer);
    pen.drawImage(overlays[layer.kind], ...box);
    pen.globalAlpha = 1;
    pen.imageSmoothingEnabled = true;
    if (!whole) outline(pen);
  }

  // What the encoder sees, dashed so that it is seen on light and on dark.
  function outline(pen) {
    for (const [colour, dashes] of [["#333", []], ["#fff", [6, 6]]]) {
      pen.strokeStyle = colour;
      pen.setLineDash(dashes);
      pen.lineWidth = 1.5;
      pen.strokeRect(...box);
    }
  }

  function show(kind, strength) {
    layer = view.layers.find((one) => one.kind === kind);
    draw(strength);
    part(".layer-title").textContent = layer.title;
    part(".layer-note").textContent = layer.note;
    paintBar(part(".bar"), layer);
    part(".bar").setAttribute("aria-label", `Colours from ${layer.ticks[0][1]} to ${layer.ticks.at(-1)[1]}`);
    part(".ticks").replaceChildren(...layer.ticks.map(tick));
    part(".ticks").classList.toggle("verdicts", layer.map === "verdict");
    drawHistogram(part(".counts"), maps, layer);
    canvas.setAttribute("aria-label", `${layer.title} over ${content.name}, ${view.title}`);
    point();
  }

  function tick([value, text]) {
    const mark = document.createElement("span");
    mark.textContent = text;
    const place = placeOn(layer.limits, value);
    mark.style.left = `${100 * place}%`;
    mark.className = place < 0.04 ? "start" : place > 0.96 ? "end" : "";
    return mark;
  }

  // The place in the photo, from 0 to 1 each way, to the pixel that lies there; null outside what the encoder sees.
  function pixelAt([x, y]) {
    const column = Math.floor(((x * wide - left) / (right - left)) * width);
    const row = Math.floor(((y * tall - top) / (bottom - top)) * height);
    return column >= 0 && column < width && row >= 0 && row < height ? [column, row] : null;
  }

  function placeOf([column, row]) {
    return [
      (left + ((column + 0.5) / width) * (right - left)) / wide,
      (top + ((row + 0.5) / height) * (bottom - top)) / tall,
    ];
  }

  function read(place) {
    pixel = pixelAt(place);
    const mark = part(".mark");
    mark.hidden = false;
    const [x, y] = pixel ? placeOf(pixel) : place;
    mark.style.left = `${100 * x}%`;
    mark.style.top = `${100 * y}%`;
    part(".reading").replaceChildren(...readings().flatMap(([name, text, value]) => pair(name, text, value)));
    point();
    return spoken();
  }

  function readings() {
    const at = pixel && pixel[1] * width + pixel[0];
    const value = (name) => (pixel ? maps[name].values[at] : NaN);
    const number = (label, name) => [label, pixel ? written(value(name), maps[name].digits) : "–", value(name)];
    const rows = [
      ["column, row", pixel ? `${pixel[0]}, ${pixel[1]}` : "not seen", NaN],
      number("importance", "importance"),
      number("uncertainty", "uncertainty"),
    ];
    if (!maps.vote_share) return [...rows, ["U ≤ median", pixel ? (value("certain") === 1 ? "yes" : "no") : "–", value("certain")]];
    return [...rows, number("votes", "vote_share"), ["verdict", pixel ? VERDICTS[value("verdict")] : "–", value("verdict")]];
  }

  function pair(name, text, value) {
    const [term, told] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    told.textContent = text;
    if (!Number.isNaN(value)) told.dataset.value = value;
    return [term, told];
  }

  function spoken() {
    return `${view.title}: ${readings().map(([name, text]) => `${name} ${text}`).join("; ")}`;
  }

  // On the colour bar, where the pixel's value lies.
  function point() {
    const pointer = part(".pointer");
    pointer.hidden = !pixel || layer.map === "verdict";
    if (pixel) pointer.style.left = `${100 * placeOn(layer.limits, maps[layer.map].values[pixel[1] * width + pixel[0]])}%`;
  }

  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const far = event.shiftKey ? 10 : 1;
    const from = pixel ?? [width >> 1, height >> 1];
    const moved = [from[0] + far * step[0], from[1] + far * step[1]];
    whenRead(placeOf([Math.max(0, Math.min(width - 1, moved[0])), Math.max(0, Math.min(height - 1, moved[1]))]), true);
  });
  const pointed = (event) => {
    const area = canvas.getBoundingClientRect();
    whenRead([(event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height], false);
  };
  canvas.addEventListener("pointerdown", pointed);
  canvas.addEventListener("pointermove", pointed);

  return { node, draw, show, read, layers: view.layers };
}

function addLinks(where, links) {
  for (const { label, href } of links) {
    const link = document.createElement("a");
    link.href = href;
    link.download = "";
    link.textContent = label;
    where.append(link);
  }
}
