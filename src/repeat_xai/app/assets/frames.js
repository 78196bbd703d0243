// Shows the pages of a result, each in a frame. A newer page replaces an older one once it is ready, and keeps the layer
// and the strength that were chosen. Frames side by side show the same layer.

const container = element.querySelector(".frames");
let latestShow = 0;

function pageIn(frame) {
  return frame.contentDocument;
}

function readChoice(frame) {
  const page = pageIn(frame);
  return { layer: page.querySelector("input[name=layer]:checked")?.value, strength: page.querySelector("#strength")?.value };
}

function applyChoice(frame, { layer, strength }) {
  const page = pageIn(frame);
  const button = page.querySelector(`input[name=layer][value="${layer}"]`);
  if (button && !button.checked) {
    button.checked = true;
    button.dispatchEvent(new Event("change", { bubbles: true }));
  }
  const slider = page.querySelector("#strength");
  if (slider && strength !== undefined) {
    slider.value = strength;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

// The page uses the app's colour scheme.
function matchScheme(frame) {
  const dark = document.body.classList.contains("dark");
  pageIn(frame).documentElement.style.colorScheme = dark ? "dark" : "light";
  pageIn(frame).getElementById("strength").dispatchEvent(new Event("input"));
}

// The frame is as tall as the page in it.
function fit(frame) {
  const page = pageIn(frame);
  matchScheme(frame);
  page.getElementById("view").style.marginBottom = 0;
  page.documentElement.style.setProperty("--tall", `${Math.round(Math.max(320, 0.62 * innerHeight))}px`);
  const resize = () => (frame.style.height = `${Math.ceil(page.body.getBoundingClientRect().height)}px`);
  new ResizeObserver(resize).observe(page.body);
  resize();
}

function ready(frame) {
  return new Promise((resolve) => {
    frame.addEventListener("load", async () => {
      const root = pageIn(frame).documentElement;
      while (frame.isConnected && !root.dataset.ready) await new Promise((later) => setTimeout(later, 20));
      resolve();
    }, { once: true });
  });
}

// A choice that the user makes in one frame is applied to the others. Choices made by scripts are not trusted events,
// so this does not go round in circles.
function shareChoices(frame) {
  for (const kind of ["change", "input"]) {
    pageIn(frame).getElementById("controls").addEventListener(kind, (event) => {
      if (!event.isTrusted) return;
      for (const other of container.querySelectorAll("iframe:not(.coming)")) {
        if (other !== frame) applyChoice(other, readChoice(frame));
      }
    });
  }
}

async function show() {
  const thisShow = ++latestShow;
  const addresses = props.value ?? [];
  if (!addresses.length) {
    container.replaceChildren();
    return;
  }
  const shown = container.querySelector("iframe:not(.coming)");
  const choice = shown ? readChoice(shown) : null;
  for (const late of container.querySelectorAll(".coming")) late.remove();
  const frames = addresses.map((address) => {
    const frame = document.createElement("iframe");
    frame.className = "coming";
    frame.title = "The result";
    frame.src = address;
    return frame;
  });
  const allReady = Promise.all(frames.map(ready));
  container.append(...frames);
  await allReady;
  if (thisShow !== latestShow) return;
  for (const frame of frames) {
    fit(frame);
    applyChoice(frame, choice ?? readChoice(frame));
    shareChoices(frame);
    frame.classList.remove("coming");
  }
  for (const old of [...container.children]) if (!frames.includes(old)) old.remove();
}

watch("value", show);
new MutationObserver(() => container.querySelectorAll("iframe:not(.coming)").forEach(matchScheme)).observe(document.body, {
  attributeFilter: ["class"],
});
