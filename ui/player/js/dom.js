// Elements without markup strings: text only ever enters as text.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** [{text, bold}] as nodes. */
export function spanNodes(spans) {
  return spans.map(({ text, bold }) => (bold ? el("b", {}, text) : document.createTextNode(text)));
}

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  play: "M5 3.5v13l11-6.5z",
  pause: "M5 3.5h3.6v13H5zM11.4 3.5H15v13h-3.6z",
  back: "M13 3.5v13L4 10zM14.6 3.5h1.8v13h-1.8z",
  forward: "M7 3.5v13l9-6.5zM3.6 3.5h1.8v13H3.6z",
  previous: "M9.5 4v12L1.5 10zM18 4v12l-8-6z",
  next: "M10.5 4v12l8-6zM2 4v12l8-6z",
  more:
    "M4 8.4a1.6 1.6 0 110 3.2a1.6 1.6 0 110-3.2zM10 8.4a1.6 1.6 0 110 3.2a1.6 1.6 0 110-3.2z" +
    "M16 8.4a1.6 1.6 0 110 3.2a1.6 1.6 0 110-3.2z",
  close:
    "M4.2 3l5.8 5.8L15.8 3 17 4.2 11.2 10l5.8 5.8-1.2 1.2L10 11.2 4.2 17 3 15.8 8.8 10 3 4.2z",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A canvas whose pixels follow its size and the screen's; `draw(pen, width, height)`. */
export function paintCanvas(canvas, pens, theme, draw, width, height, zoom = 1) {
  const ratio = Math.min(4, (globalThis.devicePixelRatio || 1) * zoom);
  const w = Math.round(width * ratio);
  const h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const pen = pens(canvas, theme, ratio);
  pen.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.context.clearRect(0, 0, width, height);
  draw(pen, width, height);
  return pen;
}
