// Which image is open: the part of the address after # says it, so that Back goes back.

const screening = root.dataset.kind === "screen";
root.addEventListener("themed", redraw);

let opened = null;

function asking() {
  const card = cards.find((one) => one.firstElementChild.hash && one.firstElementChild.hash === location.hash);
  return card?.dataset.number ?? (screening ? null : "1");
}

async function follow(moved) {
  const asked = asking();
  const before = opened;
  opened = asked;
  if (asked !== null) {
    try {
      await openImage(asked);
    } catch (error) {
      document.getElementById("view-title").textContent = "This image cannot be shown: the browser may be too old.";
      document.getElementById("view").hidden = false;
      throw error;
    }
  } else {
    document.getElementById("view").hidden = true;
  }
  if (asked !== opened) return;
  if (screening) {
    for (const name of ["overview", "gallery"]) document.getElementById(name)?.toggleAttribute("hidden", asked !== null);
  }
  mark();
  if (!moved) return;
  if (asked !== null) {
    document.getElementById("view-title").focus({ preventScroll: true });
    scrollTo({ top: screening ? 0 : document.getElementById("view").offsetTop - 16 });
  } else {
    document.querySelector(`#cards a[href="#image-${before}"]`)?.focus();
  }
}

// Which card is open, and which come before and after it.
function mark() {
  const links = openable();
  const at = links.findIndex((link) => link.hash === `#image-${opened}`);
  links.forEach((link, i) => (i === at ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  for (const [name, to] of [["previous", links[at - 1]], ["next", at < 0 ? undefined : links[at + 1]]]) {
    const step = document.getElementById(name);
    if (!step) continue;
    if (to) step.setAttribute("href", to.hash);
    else step.removeAttribute("href");
  }
}

find?.addEventListener("input", mark);
addEventListener("hashchange", () => follow(true));
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && screening && opened !== null) location.hash = "";
});
follow(false).then(() => (root.dataset.ready = Math.round(performance.now())));
