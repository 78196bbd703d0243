// The images in the order asked for, and only those asked for.

const cards = [...document.querySelectorAll("#cards > li")];
const find = document.getElementById("find");
const ROUNDED = 1 - 1e-12; // a slider does not keep the last digits of its ends

function inOrder() {
  const order = find.elements.order.value;
  const way = order.startsWith("-") ? -1 : 1;
  const key = order.replace("-", "");
  const number = (card) => Number(card.dataset.number);
  const compared = {
    given: () => 0,
    name: (a, b) => a.dataset.name.localeCompare(b.dataset.name, undefined, { numeric: true }),
    uncertainty: (a, b) => a.dataset.uncertainty - b.dataset.uncertainty,
    unknown: (a, b) => a.dataset.unknown - b.dataset.unknown,
  }[key];
  return [...cards].sort((a, b) => way * compared(a, b) || number(a) - number(b));
}

function arrange() {
  const words = find.elements.name.value.trim().toLowerCase();
  const least = find.elements["least-uncertainty"];
  const unknown = find.elements["least-unknown"];
  for (const card of cards) {
    card.hidden =
      !card.dataset.name.toLowerCase().includes(words) ||
      Number(card.dataset.uncertainty) < Number(least.value) * ROUNDED ||
      (unknown !== undefined && Number(card.dataset.unknown) < Number(unknown.value));
  }
  document.getElementById("cards").replaceChildren(...inOrder());
  const shown = cards.filter((card) => !card.hidden).length;
  document.getElementById("count").textContent = `${shown} of ${cards.length} images`;
  for (const slider of [least, unknown]) {
    if (slider) slider.parentElement.querySelector("output").textContent = Number(slider.value).toPrecision(3);
  }
}

// The cards that are shown and can be opened, as they stand.
function openable() {
  return [...document.querySelectorAll("#cards > li:not([hidden]) > a")].filter((link) => link.hash);
}

if (find) {
  const scores = cards.map((card) => Number(card.dataset.uncertainty));
  const least = find.elements["least-uncertainty"];
  [least.min, least.max] = [Math.min(...scores), Math.max(...scores)];
  least.value = least.min;
  find.addEventListener("input", arrange);
  find.addEventListener("submit", (event) => event.preventDefault());
  arrange();
}
