// One image, opened: its content is decoded only now.

const controls = document.getElementById("controls");
const strength = document.getElementById("strength");
let tiles = [];
let opening = 0;

const chosenLayer = () => controls.elements.layer.value;
const chosenStrength = () => Number(strength.value) / 100;

async function parsed() {
  if (document.readyState === "loading") {
    await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
  }
}

async function openImage(number) {
  const mine = ++opening;
  const section = document.getElementById("view");
  await parsed();
  const content = JSON.parse(document.getElementById(`image-${number}`).textContent);
  const photo = await createImageBitmap(new Blob([bytesOf(content.photo)]));
  const made = await Promise.all(content.views.map((view) => tile(content, view, photo, readAt)));
  if (mine !== opening) return;
  tiles = made;
  document.getElementById("view-title").textContent = content.name;
  document.getElementById("facts").textContent = content.facts.join(" · ");
  document.getElementById("links").replaceChildren();
  addLinks(document.getElementById("links"), content.links);
  nameLayers();
  const place = document.getElementById("tiles");
  place.dataset.count = tiles.length;
  place.replaceChildren(...tiles.map((one) => one.node));
  for (const one of tiles) one.show(chosenLayer(), chosenStrength());
  const [tall, wide] = content.size;
  const [left, top, right, bottom] = content.box;
  readAt([(left + right) / 2 / wide, (top + bottom) / 2 / tall], false);
  section.hidden = false;
  section.dataset.number = number;
}

// Methods that vote give a verdict, the others a part that is certain.
function nameLayers() {
  for (const label of document.querySelectorAll("#layers label")) {
    const kind = label.querySelector("input").value;
    const names = tiles.map((one) => one.layers.find((layer) => layer.kind === kind).label);
    label.querySelector("span").textContent = [...new Set(names)].join(" / ");
  }
}

// A place in the photo, read in every method at once.
function readAt(place, byKeys) {
  const told = tiles.map((one) => one.read(place));
  if (byKeys) document.getElementById("spoken").textContent = told.join(". ");
}

function redraw() {
  for (const one of tiles) one.draw(chosenStrength());
}

document.getElementById("layers").addEventListener("change", () => {
  for (const one of tiles) one.show(chosenLayer(), chosenStrength());
});
strength.addEventListener("input", () => {
  document.getElementById("strength-shown").textContent = `${strength.value} %`;
  redraw();
});
controls.addEventListener("submit", (event) => event.preventDefault());
