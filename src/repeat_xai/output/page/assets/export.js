// The picture as it is looked at, with its scale, as a PNG of its own.

const EDGE = 16;

function exported(picture, bar, layer, caption) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width + 2 * EDGE, picture.height + 2 * EDGE + 76];
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, EDGE, EDGE);
  const top = picture.height + EDGE + 30;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(bar, EDGE, top, picture.width, 12);
  pen.fillStyle = "#222";
  pen.font = "14px system-ui, sans-serif";
  pen.fillText(`${caption}: ${layer.title}`, EDGE, top - 10, picture.width);
  layer.ticks.forEach(([value, text]) => {
    const place = placeOn(layer.limits, value);
    pen.textAlign = place < 0.05 ? "left" : place > 0.95 ? "right" : "center";
    pen.fillText(text, EDGE + place * picture.width, top + 28);
  });
  return canvas;
}

function save(canvas, name) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
}
