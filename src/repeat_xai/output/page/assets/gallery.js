// The gallery: cards in the chosen order, and only those that pass the filters.

const cards = [...document.querySelectorAll("#cards > li")];
const filters = document.getElementById("find");
const ROUNDING = 1 - 1e-12; // a slider does not keep the last digits of its ends

function sortedCards() {
  const order = filters.elements.order.value;
  const direction = order.startsWith("-") ? -1 : 1;
  const key = order.replace("-", "");
  const number = (card) => Number(card.dataset.number);
  const score = (name) => (a, b) => {
    const [first, second] = [a, b].map((card) => card.dataset[name]);
    if (first === undefined || second === undefined) return direction * ((first === undefined) - (second === undefined));
    return first - second;
  };
  const compare = {
    given: () => 0,
    name: (a, b) => a.dataset.name.localeCompare(b.dataset.name, undefined, { numeric: true }),
    uncertainty: score("uncertainty"), // cards without a score stand last in both directions
    probability: score("probability"),
  }[key];
  return [...cards].sort((a, b) => direction * compare(a, b) || number(a) - number(b));
}

// Whether a card's score reaches a slider; a slider at its lower end lets cards without a score pass.
function reaches(card, name, slider) {
  if (!slider) return true;
  if (card.dataset[name] === undefined) return Number(slider.value) <= Number(slider.min);
  return Number(card.dataset[name]) >= Number(slider.value) * ROUNDING;
}

function updateGallery() {
  const text = filters.elements.name.value.trim().toLowerCase();
  const uncertainty = filters.elements["least-uncertainty"];
  const probability = filters.elements["least-probability"];
  for (const card of cards) {
    card.hidden =
      !card.dataset.name.toLowerCase().includes(text) ||
      !reaches(card, "uncertainty", uncertainty) ||
      !reaches(card, "probability", probability);
  }
  document.getElementById("cards").replaceChildren(...sortedCards());
  const shown = cards.filter((card) => !card.hidden).length;
  document.getElementById("count").textContent = `${shown} of ${cards.length} images`;
  for (const slider of [uncertainty, probability]) {
    if (slider) slider.parentElement.querySelector("output").textContent = Number(slider.value).toPrecision(3);
  }
}

// Links of the cards that are shown and open on this page, in their present order.
function openableLinks() {
  return [...document.querySelectorAll("#cards > li:not([hidden]) > a")].filter((link) => link.hash);
}

if (filters) {
  const scores = cards.map((card) => card.dataset.uncertainty).filter((score) => score !== undefined).map(Number);
  const slider = filters.elements["least-uncertainty"];
  if (slider) {
    [slider.min, slider.max] = [Math.min(...scores), Math.max(...scores)];
    slider.value = slider.min;
  }
  filters.addEventListener("input", updateGallery);
  filters.addEventListener("submit", (event) => event.preventDefault());
  updateGallery();
}
