// The head of the stage: iteration, clock, duration and what bound it, the token budget by phase.

import { NS } from "./film.js";

export function drawHeader(pen, box, film, state, words) {
  const { colors } = pen;
  const half = box.narrow ? box.w : box.w * 0.667;
  const room = half * (box.narrow ? 0.7 : 0.72);
  const baseline = box.y + 42;
  const { engine, engines } = film.header;
  const which = engines > 1 ? ` · ${words.text("say.engine", { n: engine })}` : "";
  const last = words.count(film.total - 1);
  const [clock, clockUnit] = clockParts(words, state.startNs);
  const [duration, unit] = words.timeParts(state.endNs - state.startNs);
  // [label, number, what follows it, a number of the width to leave room for]
  const figures = [
    [words.text("head.iteration") + which, words.count(state.iteration), `/ ${last}`, last],
    [words.text("head.clock"), clock, clockUnit, words.fixed(film.header.end_ns / NS, 3)],
    [words.text("head.duration"), duration, words.text(`unit.${unit}`), "00.0"],
  ];
  const small = 15;
  let size = 34;
  let widths;
  do {
    size -= 2;
    widths = figures.map(([label, , tail, widest]) => Math.max(pen.width(label, 13),
      pen.width(widest.replace(/\d/g, "0"), size, 700) + 6 + pen.width(tail, small)));
  } while (size > 18 && widths.reduce((sum, w) => sum + w, 0) + 2 * 16 > room);
  const gap = Math.min(44, (room - widths.reduce((sum, w) => sum + w, 0)) / 2);
  let x = box.x;
  figures.forEach(([label, number, tail], i) => {
    pen.text(label, x, box.y + 10, { size: 13, color: colors.muted });
    const w = pen.text(number, x, baseline, { size, weight: 700 });
    pen.text(tail, x + w + 6, baseline, { size: small, color: colors.muted });
    x += widths[i] + Math.max(gap, 10);
  });
  if (Number.isFinite(state.throughput)) {
    pen.text(words.text("head.throughput", { n: state.throughput }), box.x, baseline + 18, {
      size: 12, color: colors.muted, most: room,
    });
  }
  drawTime(pen, { x: box.x + half * 0.75, y: box.y, w: half * 0.24 }, film, state, words);
  const budget = box.narrow
    ? { x: box.x, y: box.y + 70, w: box.w }
    : { x: box.x + half + 12, y: box.y, w: box.w - half - 12 };
  drawBudget(pen, budget, film, state, words);
  pen.line(box.x, box.y + box.h + 1, box.x + box.w, box.y + box.h + 1, colors.line);
}

/** The clock with as many decimals as tell two iterations apart. */
export function clockParts(words, ns) {
  return [words.fixed(ns / NS, 3), words.text("unit.s")];
}

/** The parts of the duration as [name, seconds]; the one that binds comes out strong. */
export function timeBars(film, time) {
  if (time.compute === undefined) return { bars: [] };
  if (film.header.clock === "roofline" || film.header.clock === "calibrated") {
    const compute = time.compute >= time.memory;
    return {
      title: compute ? "head.compute_bound" : "head.memory_bound",
      bars: [["compute", time.compute, compute], ["memory", time.memory, !compute]],
      rest: time.total - Math.max(time.compute, time.memory),
    };
  }
  const bars = [["fixed", time.fixed, false], ["tokens", time.perToken, true]];
  if (time.swap > 0) bars.push(["swap", time.swap, false]);
  return { title: "head.parts", bars };
}

function drawTime(pen, box, film, state, words) {
  const { colors } = pen;
  const { title, bars, rest } = timeBars(film, state.time);
  if (!bars.length) return;
  const bound = rest !== undefined; // something binds, and that is the news
  pen.text(words.text(title), box.x, box.y + 10, {
    size: 13, weight: bound ? 600 : 400, color: bound ? colors.ink : colors.muted,
    most: box.w + 10,
  });
  const longest = Math.max(...bars.map((bar) => bar[1]), 1e-9);
  const names = bars.map(([name]) => words.text(`time.${name}`));
  const left = Math.max(...names.map((name) => pen.width(name, 12, 600))) + 6;
  const step = bars.length > 2 ? 13 : 15;
  bars.forEach(([name, seconds, strong], i) => {
    const y = box.y + (bars.length > 2 ? 24 : 27) + i * step;
    const weight = strong ? 600 : 400;
    pen.text(names[i], box.x, y, { size: 12, weight, color: strong ? colors.ink : colors.muted });
    const value = words.time(seconds * NS);
    const room = box.w - left - pen.width(value, 12, weight) - 6;
    const w = Math.max(2, (seconds / longest) * Math.max(room, 14));
    const color = name === "swap" ? colors.swap : strong ? colors.ink : colors.waiting;
    pen.box(box.x + left, y - 8, w, 8, { radius: 2, fill: color });
    pen.text(value, box.x + left + w + 5, y, {
      size: 12, weight, color: strong ? colors.ink : colors.muted,
    });
  });
  if (rest > 0) {
    pen.text(words.text("head.rest", { rest: rest * NS }), box.x, box.y + 57, {
      size: 12, color: colors.muted, most: box.w + 12,
    });
  }
}

/** Tokens of the iteration by phase: [phase, tokens]. */
export function tokensByPhase(film, row) {
  const r = film.rows;
  return [
    ["decode", r.decode_requests[row]],
    ["recompute", r.recompute_tokens[row]],
    ["prefill", r.prefill_tokens[row]],
    ["kept", r.padding_tokens[row]],
  ];
}

function drawBudget(pen, box, film, state, words) {
  const { colors } = pen;
  const parts = tokensByPhase(film, state.row).filter((part) => part[1] > 0);
  const used = parts.reduce((sum, part) => sum + part[1], 0);
  const budget = film.header.budget;
  pen.text(words.text(budget ? "head.budget" : "head.tokens"), box.x, box.y + 10, {
    size: 13, color: colors.muted,
  });
  const tail = budget
    ? words.text("head.of_tokens", { n: budget })
    : words.text("head.some_tokens", { n: used });
  const tailWidth = pen.text(tail, box.x + box.w, box.y + 10, {
    size: 13, color: colors.muted, align: "right",
  });
  pen.text(words.count(used), box.x + box.w - tailWidth - 5, box.y + 10, {
    size: 14, weight: 700, align: "right",
  });
  pen.rect(box.x, box.y + 18, box.w, 15, colors.track);
  const whole = Math.max(budget ?? used, used, 1);
  let x = box.x;
  for (const [phase, tokens] of parts) {
    const w = (tokens / whole) * box.w;
    pen.area(phase, x, box.y + 18, Math.max(w, 1.5), 15);
    x += w;
  }
  x = box.x;
  for (const [phase, tokens] of parts) {
    const text = `${words.text(`phase.${phase}`)} ${words.count(tokens)}`;
    pen.area(phase, x, box.y + 41, 9, 9);
    x += 13 + pen.text(text, x + 13, box.y + 50, { size: 12 }) + 12;
  }
}
