// What can be taken along: the film as one HTML file, a picture, a video.

export function downloadBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

export function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  }
  return btoa(text);
}

/** One HTML file with the player and its data; it asks nobody for anything. */
export function standaloneHtml(source, style, data, title, language) {
  const safe = title.replace(/[<>&"]/g, "");
  // The words come with the source text, the numbers as base64: nothing in them can be markup.
  return [
    `<!doctype html>\n<html lang="${language}">\n<head>\n<meta charset="utf-8">`,
    `<meta name="viewport" content="width=device-width, initial-scale=1">`,
    `<title>${safe}</title>`,
    `<style>\nbody { margin: 0; padding: 20px }\n${style}\n</style>\n</head>\n<body>`,
    `<main id="film"></main>`,
    `<script>\n${source}\n` +
      `iterationLabPlayer().standalone(document.getElementById("film"), ` +
      `"${toBase64(data)}", iterationLabPlayer);\n<\/script>\n</body>\n</html>\n`,
  ].join("\n");
}

/** Record a canvas until stop() is called; `done` gets the video. */
export function recordCanvas(canvas, ground, done) {
  // A copy with an opaque ground: videos have no transparency.
  const copy = document.createElement("canvas");
  const c = copy.getContext("2d");
  let ticket = 0;
  const paint = () => {
    if (copy.width !== canvas.width || copy.height !== canvas.height) {
      copy.width = canvas.width;
      copy.height = canvas.height;
    }
    c.fillStyle = ground;
    c.fillRect(0, 0, copy.width, copy.height);
    c.drawImage(canvas, 0, 0);
    ticket = requestAnimationFrame(paint);
  };
  paint();
  const type = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"]
    .find((name) => MediaRecorder.isTypeSupported(name));
  const recorder = new MediaRecorder(copy.captureStream(30), {
    mimeType: type, videoBitsPerSecond: 6e6,
  });
  const parts = [];
  recorder.ondataavailable = (event) => event.data.size && parts.push(event.data);
  recorder.onstop = () => {
    cancelAnimationFrame(ticket);
    done(new Blob(parts, { type: "video/webm" }));
  };
  recorder.start(500);
  return recorder;
}
