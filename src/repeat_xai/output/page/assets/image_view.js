// The image that is open, by all its methods. Its content is decoded only when it is opened.

const controls = document.getElementById("controls");
const opacitySlider = document.getElementById("strength");
let methodViews = [];
let latestOpening = 0;

const chosenLayer = () => controls.elements.layer.value;
const chosenOpacity = () => Number(opacitySlider.value) / 100;

// The contents of the images stand behind this script.
async function documentParsed() {
  if (document.readyState === "loading") {
    await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
  }
}

async function openImage(number) {
  const opening = ++latestOpening;
  const section = document.getElementById("view");
  await documentParsed();
  const content = JSON.parse(document.getElementById(`image-${number}`).textContent);
  const photo = await createImageBitmap(new Blob([bytesOf(content.photo)]));
  const created = await Promise.all(content.views.map((view) => createMethodView(content, view, photo, readAt)));
  if (opening !== latestOpening) return; // another image has been opened while this one was decoded
  methodViews = created;
  document.getElementById("view-title").textContent = content.name;
  document.getElementById("facts").textContent = content.facts.join(" · ");
  document.getElementById("links").replaceChildren();
  addLinks(document.getElementById("links"), content.links);
  nameLayers();
  const tiles = document.getElementById("tiles");
  tiles.dataset.count = methodViews.length;
  tiles.replaceChildren(...methodViews.map((view) => view.node));
  showLayers();
  const [height, width] = content.size;
  const [left, top, right, bottom] = content.box;
  readAt([(left + right) / 2 / width, (top + bottom) / 2 / height], false);
  section.hidden = false;
  section.dataset.number = number;
}

// The third layer is a verdict for methods that vote and the more certain half for the others: a button names both.
function nameLayers() {
  for (const label of document.querySelectorAll("#layers label")) {
    const kind = label.querySelector("input").value;
    const names = methodViews.map((view) => view.layers.find((layer) => layer.kind === kind).label);
    label.querySelector("span").textContent = [...new Set(names)].join(" / ");
  }
}

// Reads the same place of the photo in every method; what is read by keyboard is also announced.
function readAt(place, byKeyboard) {
  const sentences = methodViews.map((view) => view.read(place));
  if (byKeyboard) document.getElementById("spoken").textContent = sentences.join(". ");
}

function showLayers() {
  for (const view of methodViews) view.showLayer(chosenLayer(), chosenOpacity());
}

function redraw() {
  for (const view of methodViews) view.draw(chosenOpacity());
}

document.getElementById("layers").addEventListener("change", showLayers);
opacitySlider.addEventListener("input", () => {
  document.getElementById("strength-shown").textContent = `${opacitySlider.value} %`;
  redraw();
});
controls.addEventListener("submit", (event) => event.preventDefault());
