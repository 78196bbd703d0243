// The picture as it is shown, with its colour scale, as a PNG to keep.

const EXPORT_MARGIN = 16;
const SCALE_HEIGHT = 76;

function pictureWithScale(picture, bar, layer, caption) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width + 2 * EXPORT_MARGIN, picture.height + 2 * EXPORT_MARGIN + SCALE_HEIGHT];
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, EXPORT_MARGIN, EXPORT_MARGIN);
  const top = picture.height + EXPORT_MARGIN + 30;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(bar, EXPORT_MARGIN, top, picture.width, 12);
  pen.fillStyle = "#222";
  pen.font = "14px system-ui, sans-serif";
  pen.fillText(`${caption}: ${layer.title}`, EXPORT_MARGIN, top - 10, picture.width);
  layer.ticks.forEach(([value, text]) => {
    const fraction = fractionOf(layer.limits, value);
    pen.textAlign = fraction < 0.05 ? "left" : fraction > 0.95 ? "right" : "center";
    pen.fillText(text, EXPORT_MARGIN + fraction * picture.width, top + 28);
  });
  return canvas;
}

function saveAsPng(canvas, fileName) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = fileName;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
}
