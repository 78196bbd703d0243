// The light or dark theme: the system's choice until the button is pressed.

const root = document.documentElement;
const themeButton = document.getElementById("theme");
const systemTheme = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return root.style.colorScheme ? root.style.colorScheme === "dark" : systemTheme.matches;
}

function announceTheme() {
  themeButton.textContent = isDark() ? "Light theme" : "Dark theme";
  root.dispatchEvent(new Event("themechange"));
}

if (themeButton) {
  themeButton.addEventListener("click", () => {
    root.style.colorScheme = isDark() ? "light" : "dark";
    announceTheme();
  });
  systemTheme.addEventListener("change", announceTheme);
  announceTheme();
}
