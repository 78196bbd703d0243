// Which of the samples was pressed.

element.querySelectorAll("button").forEach((button, number) => {
  button.addEventListener("click", () => trigger("click", { number }));
});
