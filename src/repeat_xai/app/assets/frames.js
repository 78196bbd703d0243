// The pages of a result, each in a frame. A newer page takes an older one's place once it is ready, and goes on
// showing what was looked at; frames side by side show the same layer.

const place = element.querySelector(".frames");
let wanted = 0;

function inside(frame) {
  return frame.contentDocument;
}

function look(frame) {
  const page = inside(frame);
  return { layer: page.querySelector("input[name=layer]:checked")?.value, strength: page.querySelector("#strength")?.value };
}

function apply(frame, { layer, strength }) {
  const page = inside(frame);
  const chosen = page.querySelector(`input[name=layer][value="${layer}"]`);
  if (chosen && !chosen.checked) {
    chosen.checked = true;
    chosen.dispatchEvent(new Event("change", { bubbles: true }));
  }
  const slider = page.querySelector("#strength");
  if (slider && strength !== undefined) {
    slider.value = strength;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

// As dark as the app is, and as tall as the page in it.
function shade(frame) {
  inside(frame).documentElement.style.colorScheme = document.body.classList.contains("dark") ? "dark" : "light";
  inside(frame).getElementById("strength").dispatchEvent(new Event("input"));
}

function fit(frame) {
  const page = inside(frame);
  shade(frame);
  page.getElementById("view").style.marginBottom = 0;
  page.documentElement.style.setProperty("--tall", `${Math.round(Math.max(320, 0.62 * innerHeight))}px`);
  const resize = () => (frame.style.height = `${Math.ceil(page.body.getBoundingClientRect().height)}px`);
  new ResizeObserver(resize).observe(page.body);
  resize();
}

function ready(frame) {
  return new Promise((done) => {
    frame.addEventListener("load", async () => {
      const root = inside(frame).documentElement;
      while (frame.isConnected && !root.dataset.ready) await new Promise((later) => setTimeout(later, 20));
      done();
    }, { once: true });
  });
}

function share(frame) {
  for (const kind of ["change", "input"]) {
    inside(frame).getElementById("controls").addEventListener(kind, (event) => {
      if (!event.isTrusted) return;
      for (const other of place.querySelectorAll("iframe:not(.coming)")) if (other !== frame) apply(other, look(frame));
    });
  }
}

async function show() {
  const mine = ++wanted;
  const addresses = props.value ?? [];
  if (!addresses.length) {
    place.replaceChildren();
    return;
  }
  const before = place.querySelector("iframe:not(.coming)");
  const chosen = before ? look(before) : null;
  for (const late of place.querySelectorAll(".coming")) late.remove();
  const frames = addresses.map((address) => {
    const frame = document.createElement("iframe");
    frame.className = "coming";
    frame.title = "The result";
    frame.src = address;
    return frame;
  });
  const all = Promise.all(frames.map(ready));
  place.append(...frames);
  await all;
  if (mine !== wanted) return;
  for (const frame of frames) {
    fit(frame);
    apply(frame, chosen ?? look(frame));
    share(frame);
    frame.classList.remove("coming");
  }
  for (const old of [...place.children]) if (!frames.includes(old)) old.remove();
}

watch("value", show);
new MutationObserver(() => place.querySelectorAll("iframe:not(.coming)").forEach(shade)).observe(document.body, {
  attributeFilter: ["class"],
});
