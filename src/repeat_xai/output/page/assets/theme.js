// Light or dark: the system's choice until the button says otherwise.

const root = document.documentElement;
const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");

function dark() {
  return root.style.colorScheme ? root.style.colorScheme === "dark" : system.matches;
}

function themed() {
  theme.textContent = dark() ? "Light theme" : "Dark theme";
  root.dispatchEvent(new Event("themed"));
}

if (theme) {
  theme.addEventListener("click", () => {
    root.style.colorScheme = dark() ? "light" : "dark";
    themed();
  });
  system.addEventListener("change", themed);
  themed();
}
