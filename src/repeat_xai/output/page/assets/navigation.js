// Which image is open: the address after # names it, so that the browser's Back button works.

const NARROW = 640; // pixels of width below which the guide is folded, so that the image is not pushed off the screen
const isScreen = root.dataset.kind === "screen";
let openNumber = null;

// The number of the image in the address; without one, the first image, or on a page of `screen` the gallery.
function requestedNumber() {
  const card = cards.find((candidate) => candidate.firstElementChild.hash && candidate.firstElementChild.hash === location.hash);
  return card?.dataset.number ?? (isScreen ? null : "1");
}

async function followAddress(moved) {
  const requested = requestedNumber();
  const before = openNumber;
  openNumber = requested;
  if (requested !== null) {
    try {
      await openImage(requested);
    } catch (error) {
      document.getElementById("view-title").textContent = "This image cannot be shown: the browser may be too old.";
      document.getElementById("view").hidden = false;
      throw error;
    }
  } else {
    document.getElementById("view").hidden = true;
  }
  if (requested !== openNumber) return;
  if (isScreen) {
    for (const name of ["overview", "gallery"]) document.getElementById(name)?.toggleAttribute("hidden", requested !== null);
  }
  markOpenCard();
  if (!moved) return;
  if (requested !== null) {
    document.getElementById("view-title").focus({ preventScroll: true });
    scrollTo({ top: document.getElementById("view").offsetTop - 16 });
  } else {
    document.querySelector(`#cards a[href="#image-${before}"]`)?.focus();
  }
}

// Marks the card of the open image, and makes Previous and Next lead to its neighbours.
function markOpenCard() {
  const links = openableLinks();
  const index = links.findIndex((link) => link.hash === `#image-${openNumber}`);
  links.forEach((link, i) => (i === index ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  for (const [name, target] of [["previous", links[index - 1]], ["next", index < 0 ? undefined : links[index + 1]]]) {
    const step = document.getElementById(name);
    if (!step) continue;
    if (target) step.setAttribute("href", target.hash);
    else step.removeAttribute("href");
  }
}

// Unfolds the list of failures if the address names it, and says whether it does.
function unfoldFailures() {
  const failures = location.hash === "#failures" && document.getElementById("failures");
  if (failures) failures.open = true;
  return Boolean(failures);
}

if (innerWidth < NARROW) document.getElementById("guide").open = false;
root.addEventListener("themechange", redraw);
filters?.addEventListener("input", markOpenCard);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && isScreen && openNumber !== null) location.hash = "";
});
addEventListener("hashchange", () => unfoldFailures() || followAddress(true));
unfoldFailures();
followAddress(false).then(() => (root.dataset.ready = Math.round(performance.now())));
