// Sends a photo to the server when it is chosen or dropped, and then tells the app under which key it has arrived.

const field = element.querySelector(".upload");
const input = field.querySelector("input");
const note = field.querySelector(".note");
let latest = null;

function say(words) {
  note.textContent = words;
  note.hidden = !words;
}

function send(photo) {
  latest?.abort();
  if (photo.size > Number(field.dataset.most)) {
    say(`${photo.name}: more than the ${field.dataset.most / 2 ** 20} MB taken here`);
    return;
  }
  const request = (latest = new XMLHttpRequest());
  request.upload.onprogress = ({ loaded, total }) => say(`Uploading ${photo.name}: ${Math.floor((100 * loaded) / total)} %`);
  request.onerror = () => say(`${photo.name}: did not arrive; upload it again`);
  request.onload = () => {
    say(request.status === 200 ? "" : `${photo.name}: ${request.responseText.trim()}`);
    if (request.status === 200) trigger("upload", { upload: request.responseText });
  };
  request.open("POST", `photo?name=${encodeURIComponent(photo.name)}`);
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.send(photo);
}

input.addEventListener("change", () => {
  if (input.files.length) send(input.files[0]);
  input.value = "";
});
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  field.addEventListener(kind, (event) => {
    event.preventDefault();
    field.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
}
