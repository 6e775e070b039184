// Where everything stands on the stage, in units (CSS pixels before scaling).

export const ROW = { most: 38, least: 25.5 };
export const LANES = 74; // height of the lanes of moments
export const STRIPS = { batch: 45, kv: 38, waiting: 30 }; // heights
const SAID = 30; // height of the decision's line
export const LABELS = 92; // width of the strips' label column

/** Boxes {x, y, w, h} of the stage's parts; `panels` names those that are shown, `said`: a line
 * for the decision under the header. */
export function layOut(width, { panels, middle = 292, strips, said, narrow = width < 700 }) {
  const boxes = { width };
  let y = 0;
  boxes.header = { x: 0, y, w: width, h: narrow ? 122 : 66, narrow };
  y += boxes.header.h + 12;
  if (said) {
    boxes.said = { x: 0, y, w: width, h: SAID };
    y += SAID + 10;
  }
  if (narrow) y = narrowMiddle(boxes, y, width, panels, middle);
  else y = wideMiddle(boxes, y, width, panels, middle);
  if (strips.length) {
    const h = LANES + strips.reduce((sum, name) => sum + STRIPS[name] + 8, 0) + 18;
    boxes.strips = { x: 0, y: y + 10, w: width, h };
    y += 10 + h;
  }
  boxes.scrub = { x: 0, y: y + 4, w: width, h: 30 };
  boxes.height = y + 36;
  return boxes;
}

function wideMiddle(boxes, y, width, panels, height) {
  const shown = ["queue", "batch", "kv"].filter((name) => panels.includes(name));
  const gap = 24;
  const share = { queue: 0.195, batch: 0.51, kv: 0.24 };
  const least = { queue: 150, batch: 344, kv: 160 };
  const total = shown.reduce((sum, name) => sum + share[name], 0);
  const room = width - gap * (shown.length - 1);
  const widths = shown.map((name) => Math.max(least[name], (room * share[name]) / total));
  // What the least widths take too much comes from the widest part.
  const excess = widths.reduce((sum, w) => sum + w, 0) - room;
  widths[widths.indexOf(Math.max(...widths))] -= excess;
  let x = 0;
  shown.forEach((name, i) => {
    boxes[name] = { x, y, w: widths[i], h: height };
    x += widths[i] + gap;
  });
  return y + height;
}

function narrowMiddle(boxes, y, width, panels, height) {
  if (panels.includes("batch")) {
    boxes.batch = { x: 0, y, w: width, h: height };
    y += height + 14;
  }
  const below = ["queue", "kv"].filter((name) => panels.includes(name));
  const w = (width - 20 * (below.length - 1)) / Math.max(below.length, 1);
  below.forEach((name, i) => (boxes[name] = { x: i * (w + 20), y, w, h: 230 }));
  return below.length ? y + 230 : y;
}
