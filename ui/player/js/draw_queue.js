// The waiting queue as cards, and the requests whose KV is in host memory.

import { WAITED } from "./film.js";

const PITCH = 28;

export function drawQueue(pen, box, film, state, words, stage) {
  const { colors } = pen;
  const n = state.waiting.length;
  pen.text(words.text("queue.title"), box.x, box.y + 13, { size: 15, weight: 700 });
  pen.text(words.text("queue.count", { n }), box.x + box.w, box.y + 13, {
    size: 13, color: colors.muted, align: "right",
  });
  const tokensRight = box.x + box.w * 0.47;
  const waitRight = box.x + box.w - 24;
  if (n) {
    pen.text(words.text("queue.tokens"), tokensRight, box.y + 33, {
      size: 12, color: colors.muted, align: "right",
    });
    pen.text(words.text("queue.wait"), waitRight, box.y + 33, {
      size: 12, color: colors.muted, align: "right",
    });
  }
  const fits = Math.floor((box.h - 58) / PITCH);
  const shown = n > fits ? fits - 1 : n;
  for (let i = 0; i < shown; i++) {
    const y = box.y + 38 + i * PITCH;
    drawCard(pen, { x: box.x, y, w: box.w, h: 24.5 }, film, state, words, stage, i);
  }
  if (n > shown) {
    pen.text(words.text("queue.more", { n: n - shown }), box.x + 9, box.y + 55 + shown * PITCH, {
      size: 13, color: colors.muted,
    });
  }
  if (!n) {
    pen.text(words.text("queue.nobody"), box.x, box.y + 52, { size: 13, color: colors.muted });
  }
  pen.text(words.text("queue.note"), box.x, box.y + box.h - 4, {
    size: 12, color: colors.muted, most: box.w,
  });
}

function drawCard(pen, box, film, state, words, stage, place) {
  const { colors } = pen;
  const wait = state.waiting[place];
  const w = film.waits;
  const request = w.request[wait];
  const again = w.preempted[wait] && w.kind[wait] === WAITED;
  const ttft = film.ttftAt(request, state.row);
  // A preempted request's waiting counts from its preemption; its TTFT stays once given.
  const waited = Math.max(0, state.startNs - w.first_ns[wait]);
  const late = ttft.lost && !ttft.given;
  const followed = stage.followed === request;
  pen.box(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1, {
    radius: 5,
    fill: followed ? colors.track : colors.panel,
    stroke: place === 0 || followed ? colors.ink : colors.free,
    width: place === 0 ? 1.8 : 1,
  });
  const baseline = box.y + 17;
  const name = pen.text(film.label(request), box.x + 9, baseline, {
    size: 14, weight: 700, most: box.w * 0.26,
  });
  if (again) pen.preemption(box.x + 9 + name + 8, baseline - 5, 3.8);
  pen.text(words.count(w.tokens[wait]), box.x + box.w * 0.47, baseline, {
    size: 14, align: "right",
  });
  pen.text(words.count(Math.round(waited / 1e6)), box.x + box.w - 24, baseline, {
    size: 14, align: "right",
    color: late ? colors.violated : colors.ink, weight: late ? 700 : 400,
  });
  if (late) pen.violation(box.x + box.w - 13, baseline - 5, true, 4.5);
  const room = box.w - 12;
  pen.rect(box.x + 6, box.y + 20.5, room, 2, colors.track);
  const share = Math.min(1, waited / film.slo.ttft);
  pen.rect(box.x + 6, box.y + 20.5, room * share, 2, late ? colors.violated : colors.waiting);
  stage.hit(box, { request });
}

/** Requests in host memory: how many blocks wait there, whose. */
export function drawHost(pen, box, film, state, words, stage) {
  const { colors } = pen;
  pen.text(words.text("host.title"), box.x, box.y + 12, { size: 13, weight: 700 });
  let used = 0;
  for (const i of state.hosted) used += film.waits.blocks[i];
  pen.text(words.text("host.count", { used, n: film.header.host_blocks }), box.x + box.w,
    box.y + 12, { size: 12, color: colors.muted, align: "right" });
  const bar = { x: box.x, y: box.y + 19, w: box.w, h: 14 };
  pen.box(bar.x, bar.y, bar.w, bar.h, { stroke: colors.free, fill: colors.ground });
  const whole = Math.max(film.header.host_blocks, used, 1);
  let x = bar.x;
  const names = [];
  for (const i of state.hosted) {
    const w = Math.max((film.waits.blocks[i] / whole) * bar.w, 3);
    pen.area("swap", x, bar.y, w, bar.h);
    pen.line(x + w, bar.y, x + w, bar.y + bar.h, colors.ground, 1.2);
    stage.hit({ x, y: bar.y, w, h: bar.h }, { request: film.waits.request[i] });
    names.push(film.label(film.waits.request[i]));
    x += w;
  }
  pen.text(names.length ? words.names(names, 5) : words.text("host.empty"), box.x, box.y + 48, {
    size: 12, color: colors.muted, most: box.w,
  });
}
