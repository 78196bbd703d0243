// A button copies the text beside it. Where the browser offers no clipboard, the text is selected instead.

element.addEventListener("click", async (event) => {
  if (event.target.tagName !== "BUTTON") return;
  const text = event.target.parentElement.querySelector("pre");
  getSelection().selectAllChildren(text);
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    if (!document.execCommand("copy")) return;
  }
  event.target.textContent = "Copied";
  setTimeout(() => (event.target.textContent = "Copy"), 1500);
});
