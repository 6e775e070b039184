// Strips over time under the stage: lanes of moments, then batch, KV and queue, one cursor through
// all. Refusals are spans named after the head of the queue, because single marks would be a bar.

import { lowerBound, upperBound } from "./film.js";
import { LABELS, LANES, STRIPS } from "./layout.js";
import { tint } from "./pen.js";

const LANE = 17;
const OPACITY = 0.86;

/** The span of time that the strips show: {from, to} in ns, around the cursor. */
export function visibleSpan(film, row, width) {
  const whole = film.length ? film.endNs[film.length - 1] - film.startNs[0] : 1;
  const span = Math.min(whole, width);
  const start = film.startNs[0];
  const middle = film.startNs[row];
  const from = Math.max(start, Math.min(middle - span * 0.45, start + whole - span));
  return { from, to: from + span };
}

/** A span that makes an iteration a few pixels wide, rounded to a readable length. */
export function usualSpan(film) {
  if (!film.length) return 1e9;
  const step = (film.endNs[film.length - 1] - film.startNs[0]) / film.length;
  return niceStep(step * 110);
}

export function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  for (const factor of [1, 2, 5]) if (factor * power >= value * 0.999) return factor * power;
  return 10 * power;
}

/** The next number that is easy to read on an axis. */
export function niceCount(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  for (const factor of [1, 1.5, 2, 3, 4, 5, 6, 8]) {
    if (factor * power >= value) return Math.ceil(factor * power);
  }
  return 10 * power;
}

function largestIn(values, first, last) {
  let most = 1;
  for (let i = first; i <= last; i++) if (values[i] > most) most = values[i];
  return most;
}

/** Spans of standing refusals: [{event, first, end}] in local rows. */
export function refusalSpans(film) {
  if (film.refusalList) return film.refusalList;
  const spans = [];
  for (let row = 0; row < film.length; row++) {
    const event = film.refusalAt[row];
    if (event < 0) continue;
    const last = spans[spans.length - 1];
    if (last && last.event === event && last.end === row) last.end = row + 1;
    else spans.push({ event, first: row, end: row + 1 });
  }
  film.refusalList = spans;
  film.refusalStarts = Float64Array.from(spans, (span) => span.first);
  return spans;
}

export function drawStrips(pen, box, film, state, words, stage) {
  const { colors } = pen;
  const plot = { x: box.x + LABELS, w: box.w - LABELS };
  const view = visibleSpan(film, state.row, stage.span);
  const scale = plot.w / (view.to - view.from);
  const x = (ns) => plot.x + (ns - view.from) * scale;
  const first = film.rowAt(view.from);
  const last = Math.min(film.rowAt(view.to), film.length - 1);
  const c = pen.context;

  pen.line(box.x, box.y - 4, box.x + box.w, box.y - 4, colors.line);
  const lanes = ["arrive", "refuse", "preempt", "miss"];
  lanes.forEach((lane, i) => {
    const y = box.y + 9 + i * LANE;
    const key = lane === "preempt" && film.swaps() ? "lane.preempt_swap" : `lane.${lane}`;
    pen.text(words.text(key), box.x, y + 4, { size: 12, color: colors.muted, most: LABELS - 6 });
    pen.line(plot.x, y, plot.x + plot.w, y, colors.track);
  });
  c.save();
  c.beginPath();
  c.rect(plot.x, box.y - 6, plot.w, box.h);
  c.clip();
  drawRefusals(pen, plot, box.y + 9 + LANE, film, x, view, first, last, stage);
  drawMoments(pen, plot, box.y + 9, film, x, first, last, stage);

  const strips = stripsOf(film, state, words)
    .filter((strip) => stage.shownStrips.includes(strip.name));
  let y = box.y + LANES;
  for (const strip of strips) {
    if (strip.name === "batch") strip.most = niceCount(largestIn(film.rows.running, first, last));
    strip.y = y;
    strip.h = STRIPS[strip.name];
    y += strip.h + 8;
    pen.rect(plot.x, strip.y, plot.w, strip.h, colors.panel);
    drawAreas(pen, plot, strip, film, x, first, last);
    if (strip.limit) {
      const top = strip.y + strip.h - (strip.limit / strip.most) * strip.h;
      c.setLineDash([5, 3]);
      pen.line(plot.x, top, plot.x + plot.w, top, colors.ink, 1.3);
      c.setLineDash([]);
    }
  }
  c.restore();
  for (const strip of strips) {
    pen.text(strip.title, box.x, strip.y + strip.h / 2 + 3, { size: 13, most: LABELS - 34 });
    pen.text(strip.unit, box.x, strip.y + strip.h / 2 + 17, {
      size: 12, color: colors.muted, most: LABELS - 8,
    });
    if (strip.name === "batch") {
      pen.text(words.count(strip.most), plot.x - 5, strip.y + 9, {
        size: 12, color: colors.muted, align: "right",
      });
      pen.line(plot.x - 3, strip.y + 0.5, plot.x, strip.y + 0.5, colors.muted);
    }
    pen.text(words.count(strip.now), plot.x - 14, strip.y + strip.h / 2 + 4, {
      size: 15, weight: 700, align: "right",
    });
  }
  drawAxis(pen, plot, y - 4, view, x, words);
  drawCursor(pen, plot, box.y - 4, y - 2, film, state, x, words);
  stage.hit({ x: plot.x, y: box.y - 4, w: plot.w, h: y - box.y }, {
    seek: (at) => film.rowAt(view.from + (at - plot.x) / scale),
  }, true);
}

/** The three strips: layers from the bottom, value under the cursor, capacity. */
function stripsOf(film, state, words) {
  const { rows, series } = film;
  const { kv_blocks: blocks } = film.header;
  film.most ??= {
    waiting: Math.max(1, ...chunked(rows.waiting)),
    blocks: Math.max(1, ...chunked(rows.blocks_used)),
  };
  film.most.kv ??= film.most.blocks * 3 < blocks ? film.most.blocks * 1.15 : blocks;
  const full = film.most.kv === blocks;
  return [
    {
      name: "batch", title: words.text("strip.batch"), unit: words.text("strip.requests"),
      now: state.running.length, most: 1, // by what is visible
      layers: [
        ["decode", (i) => rows.running[i] - rows.prefill_requests[i]],
        ["recompute", (i) => series.recompute[i]],
        ["prefill", (i) => rows.prefill_requests[i] - series.recompute[i]],
      ],
    },
    {
      name: "kv", title: words.text("strip.kv"), unit: words.text("strip.of_blocks", { n: blocks }),
      now: state.used, most: film.most.kv, limit: full ? blocks : 0,
      layers: [
        ["decode", (i) => rows.blocks_used[i] - series.kvRecompute[i] - series.kvPrefill[i]],
        ["recompute", (i) => series.kvRecompute[i]],
        ["prefill", (i) => series.kvPrefill[i]],
      ],
    },
    {
      name: "waiting", title: words.text("strip.waiting"), unit: words.text("strip.requests"),
      now: state.waiting.length, most: film.most.waiting,
      layers: [
        ["violated", (i) => series.late[i]],
        ["waiting", (i) => rows.waiting[i] - series.late[i]],
      ],
    },
  ];
}

/** The maximum of each thousand, so that it can be spread into Math.max. */
function chunked(values) {
  const most = [];
  for (let i = 0; i < values.length; i += 1000) {
    let largest = 0;
    for (let j = i; j < Math.min(i + 1000, values.length); j++) {
      if (values[j] > largest) largest = values[j];
    }
    most.push(largest);
  }
  return most;
}

/** Stacked steps; iterations that share a pixel are drawn once, by the highest of them. */
export function drawAreas(pen, plot, strip, film, x, first, last, opacity = OPACITY) {
  const c = pen.context;
  const unit = strip.h / strip.most;
  const floor = strip.y + strip.h;
  const paths = strip.layers.map(() => new Path2D());
  const filled = strip.layers.map(() => false);
  const values = strip.layers.map(() => 0);
  let row = first;
  while (row <= last) {
    const left = x(film.startNs[row]);
    let right = x(film.endNs[row]);
    let total = -1;
    const take = (at) => {
      let sum = 0;
      for (let k = 0; k < strip.layers.length; k++) sum += Math.max(0, strip.layers[k][1](at));
      if (sum > total) {
        total = sum;
        strip.layers.forEach((layer, k) => (values[k] = Math.max(0, layer[1](at))));
      }
    };
    take(row);
    while (row < last && right - left < 1 && x(film.startNs[row + 1]) - right < 0.5) {
      row++;
      right = x(film.endNs[row]);
      take(row);
    }
    let base = floor;
    for (let k = 0; k < paths.length; k++) {
      const h = values[k] * unit;
      if (h > 0) {
        paths[k].rect(left, base - h, right - left, h);
        filled[k] = true;
      }
      base -= h;
    }
    row++;
  }
  c.globalAlpha = opacity;
  strip.layers.forEach(([phase], k) => {
    if (!filled[k]) return;
    const [color, kind, stroke] = pen.look(phase);
    c.fillStyle = color;
    c.fill(paths[k]);
    if (kind) {
      c.fillStyle = pen.pattern(kind, stroke);
      c.fill(paths[k]);
    }
  });
  c.globalAlpha = 1;
}

const STYLE_OF = {
  no_blocks: "waiting", no_budget: "no_budget", no_slot: "no_slot",
  after_preemption: "after_preemption", swapped_first: "swapped_first",
  batch_running: "batch_running", batch_full: "batch_running",
};

export function refusalStyle(film, event) {
  return STYLE_OF[film.header.reasons[film.events.reason[event]]] ?? "waiting";
}

function drawRefusals(pen, plot, y, film, x, view, first, last, stage) {
  const { colors } = pen;
  const spans = refusalSpans(film);
  let i = Math.max(0, upperBound(film.refusalStarts, first) - 1);
  for (; i < spans.length && spans[i].first <= last; i++) {
    const { event, first: from, end } = spans[i];
    const left = Math.max(x(film.startNs[from]), plot.x);
    const right = Math.min(x(film.endNs[end - 1]), plot.x + plot.w);
    const w = right - left;
    if (w <= 0) continue;
    const style = refusalStyle(film, event);
    pen.area(style, left, y - 6, Math.max(w - 0.8, 0.8), 12);
    if (style !== "waiting" && w > 3) {
      pen.box(left, y - 6, w - 0.8, 12, { stroke: colors.waiting, width: 0.8 });
    }
    const request = film.events.request[event];
    const name = film.label(request);
    if (w > pen.width(name, 12, 600) + 8) {
      const plain = style === "waiting";
      if (!plain) {
        const nameWidth = pen.width(name, 12, 600) + 6;
        pen.rect(left + w / 2 - nameWidth / 2, y - 5.5, nameWidth, 11, colors.ground);
      }
      pen.text(name, left + w / 2, y + 4, {
        size: 12, weight: 600, align: "center", color: plain ? "#10161D" : colors.ink,
      });
    }
    stage.hit({ x: left, y: y - 8, w, h: 16 }, { request });
  }
}

function drawMoments(pen, plot, top, film, x, first, last, stage) {
  const { events, header } = film;
  const from = film.eventsAt[first];
  const to = film.eventsAt[last + 1] ?? events.row.length;
  let lastX = -100;
  const named = { preempt: -100 };
  for (let i = from; i < to; i++) {
    const name = header.events[events.event[i]];
    const at = x(events.time_ns[i]);
    const mark = (y, paint) => {
      paint(at, y);
      stage.hit({ x: at - 6, y: y - 8, w: 12, h: 16 }, { request: events.request[i] });
    };
    if (name === "arrive") {
      if (at - lastX > 1.2) mark(top, (px, py) => pen.arrival(px, py));
      lastX = at;
    } else if (name === "reject" || name === "cancel") {
      mark(top, (px, py) => pen.rejection(px, py));
    } else if (name === "preempt" || name === "swap_out" || name === "swap_in") {
      const y = top + 2 * LANE;
      mark(y, (px, py) => name === "preempt"
        ? pen.preemption(px, py) : pen.swap(px, py, name === "swap_out"));
      const label = film.label(events.request[i]);
      const w = pen.width(label, 12, 400);
      if (name !== "swap_in" && at - named.preempt > w + 20 && nextIsFar(i, at + w + 14)) {
        pen.text(label, at + 8, y + 4, { size: 12, color: pen.colors.ink });
        named.preempt = at + 8;
      } else named.preempt = Math.max(named.preempt, at - w - 12);
    }
  }
  function nextIsFar(i, until) {
    for (let k = i + 1; k < to && x(events.time_ns[k]) < until; k++) {
      const name = header.events[events.event[k]];
      if (name === "preempt" || name === "swap_out" || name === "swap_in") return false;
    }
    return true;
  }
  const { misses } = film;
  const begin = lowerBound(misses.row, first);
  for (let i = begin; i < misses.row.length && misses.row[i] <= last; i++) {
    const at = x(misses.time_ns[i]);
    pen.violation(at, top + 3 * LANE, true, 4.5);
    stage.hit({ x: at - 6, y: top + 3 * LANE - 8, w: 12, h: 16 },
      { request: misses.request[i] });
  }
}

export function drawAxis(pen, plot, y, view, x, words) {
  const step = niceStep((view.to - view.from) / Math.max(3, plot.w / 110));
  const decimals = step >= 1e9 ? 0 : Math.min(4, Math.ceil(-Math.log10(step / 1e9)));
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const at = x(t);
    pen.line(at, y - 4, at, y, pen.colors.muted);
    const text = `${words.fixed(t / 1e9, decimals)} ${words.text("unit.s")}`;
    const half = pen.width(text, 12) / 2;
    const left = Math.max(plot.x + half, Math.min(at, plot.x + plot.w - half));
    pen.text(text, left, y + 13, { size: 12, color: pen.colors.muted, align: "center" });
  }
}

function drawCursor(pen, plot, top, bottom, film, state, x, words) {
  const { colors } = pen;
  const left = Math.max(x(state.startNs), plot.x + 1);
  const w = Math.max(x(state.endNs) - left, 4);
  pen.box(left, top, w, bottom - top, { stroke: colors.ink, width: 2 });
  const text = `${words.fixed(state.startNs / 1e9, 3)} ${words.text("unit.s")}`;
  const chip = pen.width(text, 13, 700) + 16;
  const middle = Math.max(plot.x + chip / 2,
    Math.min(left + w / 2, plot.x + plot.w - chip / 2));
  pen.box(middle - chip / 2, bottom + 1, chip, 17, { radius: 4, fill: colors.ink });
  pen.text(text, middle, bottom + 14, {
    size: 13, weight: 700, align: "center", color: colors.ground,
  });
  pen.rect(left - 1, bottom - 2, w + 2, 3, tint(colors.ink, 0));
}
