// Tells the app the number of the sample that was pressed.

element.querySelectorAll("button").forEach((button, number) => {
  button.addEventListener("click", () => trigger("click", { number }));
});
