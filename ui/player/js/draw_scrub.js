// The bar over the whole film: where the cursor is, which part the strips show, what lies ahead.

import { visibleSpan } from "./draw_strips.js";

/** Time of any row of the run, exact inside the window, interpolated outside of it. */
export function timeOfRow(film, row) {
  const local = row - film.first;
  if (local >= 0 && local < film.length) return film.startNs[local];
  const windows = film.header.windows;
  for (let i = windows.length - 1; i >= 0; i--) {
    const [first, start, end] = windows[i];
    if (row < first) continue;
    const next = i + 1 < windows.length ? windows[i + 1][0] : film.total;
    return start + ((end - start) * (row - first)) / Math.max(next - first, 1);
  }
  return film.header.start_ns;
}

/** The row of the run at a time; inverse of timeOfRow. */
export function rowOfTime(film, ns) {
  if (film.length && ns >= film.startNs[0] && ns <= film.endNs[film.length - 1]) {
    return film.rowAt(ns) + film.first;
  }
  const windows = film.header.windows ?? [];
  for (let i = windows.length - 1; i >= 0; i--) {
    const [first, start, end] = windows[i];
    if (ns < start) continue;
    const next = i + 1 < windows.length ? windows[i + 1][0] : film.total;
    const share = Math.min(1, (ns - start) / Math.max(end - start, 1));
    return Math.min(next - 1, first + Math.floor(share * (next - first)));
  }
  return ns < film.header.start_ns ? 0 : film.total - 1;
}

export function drawScrub(pen, box, film, state, words, stage) {
  const { colors } = pen;
  const { start_ns: start, end_ns: end } = film.header;
  const inner = { x: box.x + 9, w: box.w - 18 };
  const x = (ns) => inner.x + ((ns - start) / Math.max(end - start, 1)) * inner.w;
  const y = box.y + 15;
  const now = x(state.startNs);
  pen.box(inner.x, y - 2, inner.w, 4, { radius: 2, fill: colors.track });
  pen.box(inner.x, y - 2, now - inner.x, 4, { radius: 2, fill: colors.muted });
  const view = visibleSpan(film, state.row, stage.span);
  pen.box(x(view.from), y - 6.5, Math.max(6, x(view.to) - x(view.from)), 13, {
    radius: 3, stroke: colors.ink, width: 1.2,
  });
  for (const row of spread(film, "preempt", inner.w)) {
    pen.preemption(x(timeOfRow(film, row)), y - 10.5, 3.6);
  }
  for (const row of spread(film, "swap", inner.w)) {
    pen.swap(x(timeOfRow(film, row)), y - 10.5, true, 3);
  }
  for (const row of spread(film, "miss", inner.w)) {
    pen.rect(x(timeOfRow(film, row)) - 0.8, y + 8, 1.6, 5, colors.violated);
  }
  const c = pen.context;
  c.beginPath();
  c.arc(now, y, 7, 0, Math.PI * 2);
  c.fillStyle = colors.ink;
  c.fill();
  c.lineWidth = stage.scrubFocused ? 3 : 1.5;
  c.strokeStyle = stage.scrubFocused ? colors.decode : colors.ground;
  c.stroke();
  stage.hit({ x: box.x, y: box.y, w: box.w, h: box.h }, {
    scrub: (at) => rowOfTime(film, start + ((at - inner.x) / inner.w) * (end - start)),
  });
}

/** Rows with a mark, at most one every two units of the bar. */
function spread(film, kind, width) {
  const rows = film.marks(kind);
  const most = Math.floor(width / 2);
  if (rows.length <= most) return rows;
  const key = `${kind} ${most}`;
  film.spreadRows ??= new Map();
  if (!film.spreadRows.has(key)) {
    const chosen = new Map();
    const { start_ns: start, end_ns: end } = film.header;
    for (const row of rows) {
      const slot = Math.floor(((timeOfRow(film, row) - start) / Math.max(end - start, 1)) * most);
      if (!chosen.has(slot)) chosen.set(slot, row);
    }
    film.spreadRows.set(key, [...chosen.values()]);
  }
  return film.spreadRows.get(key);
}
