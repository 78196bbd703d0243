// Sends a photo to the server when it is chosen or dropped, and then tells the app the key of the upload.

const field = element.querySelector(".upload");
const input = field.querySelector("input");
const note = field.querySelector(".note");
let latestRequest = null;

function showNote(message) {
  note.textContent = message;
  note.hidden = !message;
}

function send(photo) {
  latestRequest?.abort();
  const maxBytes = Number(field.dataset.maxBytes);
  if (photo.size > maxBytes) {
    showNote(`${photo.name}: more than the ${maxBytes / 2 ** 20} MB accepted here`);
    return;
  }
  const request = (latestRequest = new XMLHttpRequest());
  request.upload.onprogress = ({ loaded, total }) => showNote(`Uploading ${photo.name}: ${Math.floor((100 * loaded) / total)} %`);
  request.onerror = () => showNote(`${photo.name}: did not arrive; upload it again`);
  request.onload = () => {
    showNote(request.status === 200 ? "" : `${photo.name}: ${request.responseText.trim()}`);
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
