// Two films on one clock: a card each with the state now, and one shared timeline under one cursor.

import { BasePlayer } from "./base.js";
import { drawAreas, drawAxis, niceStep } from "./draw_strips.js";
import { Film, KEPT, upperBound } from "./film.js";

const FEW_SLOTS = 8; // up to here slots are rows; above, the batch is a strip
const SEAT = 26; // height of a slot's row in the timeline
const NAMES = { least: 96, most: 150 }; // width of the column of names beside the timeline

export class ComparePlayer extends BasePlayer {
  constructor(root, host) {
    super(root, host);
    this.pace = "time";
    this.lab.classList.add("no-why", "compare");
  }

  setData(options, films) {
    const first = !this.films;
    const digest = options.digests.join(" ");
    const same = digest === this.digest;
    const now = first ? 0 : this.timeOf(this.frame);
    this.setOptions({ pace: "time", ...options });
    if (!same) {
      this.digest = digest;
      this.raw = films;
      this.films = films.map((bytes) => new Film(bytes));
      this.sides = this.films.map((film) => new Side(film));
      this.mergeClocks();
    }
    if (first) this.frame = this.frameAt((options.at_s ?? 0) * 1e9);
    else if (!same) this.frame = this.frameAt(now);
    this.arrived = true;
    this.renew();
    if (first && options.autoplay && !this.theme.still) this.play();
  }

  /** The moments at which anything changes on either side. */
  mergeClocks() {
    const moments = new Set();
    for (const film of this.films) {
      for (const ns of film.startNs) moments.add(ns);
      if (film.length) moments.add(film.endNs[film.length - 1]);
    }
    this.times = Float64Array.from(moments).sort();
    this.markFrames = {};
    for (const kind of [...(this.films[0]?.header.marks ?? []), "any"]) {
      const frames = new Set();
      for (const film of this.films) {
        for (const row of film.marks(kind)) frames.add(this.frameAt(film.startNs[row]));
      }
      this.markFrames[kind] = Float64Array.from(frames).sort();
    }
  }

  get frames() {
    return this.times?.length ?? 0;
  }

  timeOf(frame) {
    return this.times[frame] ?? 0;
  }

  frameAt(ns) {
    return Math.max(0, Math.min(upperBound(this.times, ns) - 1, this.frames - 1));
  }

  endOf(frame) {
    return this.timeOf(Math.min(frame + 1, this.frames - 1));
  }

  gapAfter() {
    return false;
  }

  marks(kind) {
    return this.markFrames[kind];
  }

  /** The moment shown: between two changes while it plays by time. */
  get now() {
    const ns = this.timeOf(this.frame);
    if (!this.playing || this.pace !== "time") return ns;
    return Math.max(ns, Math.min(this.clock, this.endOf(this.frame)));
  }

  follow(request) {
    if (request >= 0) super.follow(request);
  }

  // -- drawing ----------------------------------------------------------------------------------

  measure() {
    const css = Math.max(280, this.stage.clientWidth);
    if (this.lecture && this.frames) {
      // As large as the width allows, but nothing may stand below the edge of the window.
      const scale = css / Math.min(1000, css);
      const height = this.layout(css / scale) * scale;
      const room = this.lectureHeight(1);
      return { css, scale: Math.max(1, scale * Math.min(1, room / height)) };
    }
    return { css, scale: Math.max(1, Math.min(1.25, css / 1090)) };
  }

  layout(width) {
    const beside = width >= 740;
    const gap = 34;
    const cardWidth = beside ? (width - gap) / 2 : width;
    const slots = Math.max(...this.sides.map((side) => side.slots));
    this.few = slots <= FEW_SLOTS;
    const lines = this.few ? slots : 3;
    const h = this.cardTop() + lines * 28 + 74;
    const left = this.namesWidth(width);
    const boxes = { cards: [], lanes: [] };
    boxes.cards = this.sides.map((_, i) => beside
      ? { x: i * (cardWidth + gap), y: 0, w: cardWidth, h }
      : { x: 0, y: i * (h + 14), w: cardWidth, h });
    let y = beside ? h + 18 : 2 * h + 32;
    boxes.heading = { x: 0, y, w: width };
    y += 26;
    for (const side of this.sides) {
      const height = this.few ? side.slots * SEAT : 92;
      boxes.lanes.push({ x: 0, y: y + 14, w: width, h: height });
      y += height + 26;
    }
    boxes.axis = { x: left, y: y + 2, w: width - left };
    boxes.scrub = { x: left, y: boxes.heading.y + 26, w: width - left, h: y - boxes.heading.y };
    boxes.height = y + 34;
    this.boxes = boxes;
    return boxes.height;
  }

  /** Units above a card's slots or bars; the names of those who wait stand above slots only. */
  cardTop() {
    if (this.few) return 104;
    return this.options.sides.some((names) => names.subtitle) ? 70 : 50;
  }

  /** As wide as the longer of the two names, where there is room. */
  namesWidth(width) {
    const pen = this.pen(this.canvas, this.theme, this.pens.get(this.canvas)?.scale ?? 1);
    const widest = Math.max(...this.options.sides.map((names) =>
      pen.width(names.short ?? names.title, 14, 700)));
    return Math.max(NAMES.least, Math.min(widest + 12, NAMES.most, width / 4));
  }

  drawStage(pen) {
    const { boxes, words } = this;
    if (!this.frames) {
      pen.text(words.text("why.nothing"), 0, 40, { size: 16 });
      return;
    }
    const ns = this.now;
    this.sides.forEach((side, i) => {
      this.drawCard(pen, boxes.cards[i], side, this.options.sides[i], ns);
    });
    const from = Math.min(...this.films.map((film) => film.header.start_ns));
    const to = Math.max(...this.films.map((film) => film.header.end_ns));
    const view = { from: Math.min(from, this.sides[0].firstArrival), to };
    const plot = boxes.axis;
    const scale = plot.w / Math.max(view.to - view.from, 1);
    const x = (t) => plot.x + (t - view.from) * scale;
    this.drawHeading(pen, boxes.heading);
    this.hit(boxes.scrub, {
      scrub: (at) => this.frameAt(view.from + (at - plot.x) / scale),
    }, true);
    this.sides.forEach((side, i) => {
      this.drawLane(pen, boxes.lanes[i], side, this.options.sides[i], ns, x);
    });
    drawAxis(pen, plot, plot.y + 4, view, x, words);
    this.drawNow(pen, x(ns), boxes.heading.y + 24, plot.y, ns);
  }

  drawHeading(pen, box) {
    const { words } = this;
    pen.text(words.text(this.few ? "compare.timeline" : "compare.over_time"), box.x, box.y + 13, {
      size: 16, weight: 700,
    });
    const keys = ["prefill", "decode"];
    if (this.films.some((film) => film.rows.recompute_tokens.some((n) => n > 0))) {
      keys.push("recompute");
    }
    if (this.few) keys.push("idle");
    let x = box.x + box.w;
    const place = (text, paint) => {
      x -= pen.width(text, 13);
      pen.text(text, x, box.y + 13, { size: 13 });
      x -= 20;
      paint(x);
      x -= 16;
    };
    place(words.text("legend.arrival"), (at) => pen.arrival(at + 8, box.y + 8, 4.5));
    for (const key of keys.reverse()) {
      place(words.text(`phase.${key}`), (at) => {
        pen.area(key, at, box.y + 2, 15, 12, 2);
        if (key === "idle") pen.box(at, box.y + 2, 15, 12, { radius: 2, stroke: pen.colors.free });
      });
    }
  }

  drawCard(pen, box, side, names, ns) {
    const { words } = this;
    const { colors } = pen;
    pen.box(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1, {
      radius: 12, fill: colors.panel, stroke: colors.line,
    });
    const x = box.x + 18;
    const right = box.x + box.w - 18;
    pen.text(names.title, x, box.y + 31, { size: 22, weight: 700, most: box.w - 36 });
    pen.text(names.subtitle ?? "", x, box.y + 53, {
      size: 14, color: colors.muted, most: box.w - 36,
    });
    const now = side.at(ns);
    const y = box.y + this.cardTop();
    if (this.few) {
      this.drawWaiting(pen, { x, y: box.y + 66, right }, side, now);
      this.drawSlots(pen, { x, y, right }, side, now);
    } else this.drawBars(pen, { x, y, right }, side, now);
    this.drawFigures(pen, { x, y: box.y + box.h - 20, w: box.w - 36 }, side, now, ns);
  }

  drawWaiting(pen, box, side, now) {
    const { words } = this;
    const { colors } = pen;
    const { film } = side;
    pen.text(words.text("compare.waiting"), box.x, box.y + 17, { size: 14 });
    const waiting = now.state ? now.state.waiting : [];
    let verdict = "";
    if (now.state && waiting.length) {
      const idle = side.slots - now.state.running.length - now.state.kept.length;
      if (idle > 0) verdict = words.text("compare.idle_wait", { idle, n: waiting.length });
    } else if (now.ended) verdict = words.text("compare.done");
    const verdictWidth = verdict ? pen.width(verdict, 15, 700) + 14 : 0;
    if (verdict) {
      pen.text(verdict, box.right, box.y + 17, { size: 15, weight: 700, align: "right" });
    }
    let x = box.x + 78;
    if (!waiting.length) {
      pen.text(words.text(now.before ? "compare.not_yet" : "compare.nobody"), x, box.y + 17, {
        size: 14, color: colors.muted,
      });
      return;
    }
    const size = 40;
    const room = box.right - verdictWidth - x;
    const fits = Math.floor(room / (size + 6));
    const shown = waiting.length > fits ? Math.floor((room - 70) / (size + 6)) : waiting.length;
    for (const i of waiting.slice(0, Math.max(shown, 0))) {
      pen.box(x, box.y + 1, size, 22, { radius: 4, fill: colors.waiting });
      pen.text(film.label(film.waits.request[i]), x + size / 2, box.y + 17, {
        size: 13, weight: 700, align: "center", color: "#10161D", most: size - 4,
      });
      x += size + 6;
    }
    if (waiting.length > shown) {
      pen.text(words.text("compare.more", { n: waiting.length - Math.max(shown, 0) }), x + 2,
        box.y + 17, { size: 13, color: colors.muted });
    }
  }

  drawSlots(pen, box, side, now) {
    const { words } = this;
    const { colors } = pen;
    const { film } = side;
    const left = box.x + 78;
    const w = (box.right - left) * 0.68;
    for (let slot = 0; slot < side.slots; slot++) {
      const y = box.y + slot * 28;
      pen.text(words.text("compare.slot", { n: slot + 1 }), box.x, y + 16, {
        size: 14, color: colors.muted,
      });
      const member = now.state && [...now.state.running, ...now.state.kept]
        .find((m) => side.slotOf(m.stay) === slot);
      if (!member || member.phase === "kept") {
        pen.area("idle", left, y, w, 23, 4);
        pen.box(left + 0.5, y + 0.5, w - 1, 22, { radius: 4, stroke: colors.free });
        const text = words.text(member ? "phase.kept" : "compare.idle");
        const half = pen.width(text, 14) / 2 + 10;
        pen.rect(left + w / 2 - half, y + 1, half * 2, 21, colors.panel);
        pen.text(text, left + w / 2, y + 16, { size: 14, align: "center", color: colors.muted });
        continue;
      }
      const output = film.requests.output_tokens[member.request];
      pen.box(left, y, w, 23, { radius: 4, fill: colors.track });
      let text;
      if (member.phase === "prefill" || member.phase === "recompute") {
        pen.area(member.phase, left, y, Math.max(w * (member.after / member.goal), 4), 23, 4);
        const key = member.phase === "prefill" ? "compare.prefill" : "compare.again";
        text = words.text(key, { done: member.after, goal: member.goal });
      } else {
        pen.area("decode", left, y, Math.max(w * (member.emitted / output), 4), 23, 4);
        text = words.text("compare.tokens", { done: member.emitted, output });
      }
      pen.box(left + 6, y + 3, 36, 17, { radius: 3, fill: colors.ground });
      pen.text(film.label(member.request), left + 24, y + 16, {
        size: 13, weight: 700, align: "center", most: 34,
      });
      pen.text(text, box.right, y + 16, {
        size: 14, align: "right", most: box.right - left - w - 8,
      });
    }
  }

  /** Many slots: running, KV and waiting as bars; a length means the same on both sides. */
  drawBars(pen, box, side, now) {
    const { words } = this;
    const { colors } = pen;
    const { film } = side;
    const left = box.x + 78;
    const w = (box.right - left) * 0.66;
    const counts = { decode: 0, recompute: 0, prefill: 0 };
    for (const member of now.state?.running ?? []) {
      counts[member.phase in counts ? member.phase : "decode"] += 1;
    }
    const running = now.state?.running.length ?? 0;
    const used = now.state?.used ?? 0;
    const waiting = now.state?.waiting.length ?? 0;
    const blocks = film.header.kv_blocks;
    const most = (of) => Math.max(...this.sides.map(of));
    let queue = words.text("queue.count", { n: waiting });
    if (now.before) queue = words.text("compare.not_yet");
    else if (now.ended) queue = words.text("compare.done");
    const lines = [
      [words.text("strip.batch"), Object.entries(counts), most((one) => one.slots),
        words.text("batch.count", { n: running, slots: side.slots })],
      [words.text("strip.kv"), [["decode", used]], most((one) => one.film.header.kv_blocks),
        words.text("host.count", { used, n: blocks })],
      [words.text("strip.waiting"), [["waiting", waiting]], this.mostWaiting(), queue],
    ];
    lines.forEach(([title, parts, whole, text], i) => {
      const y = box.y + i * 28;
      pen.text(title, box.x, y + 15, { size: 14, color: colors.muted });
      pen.box(left, y + 2, w, 18, { radius: 3, fill: colors.track });
      let x = left;
      for (const [phase, n] of parts) {
        const width = (n / Math.max(whole, 1)) * w;
        pen.area(phase, x, y + 2, width, 18);
        x += width;
      }
      pen.text(text, box.right, y + 16, {
        size: 13, align: "right", most: box.right - left - w - 6,
      });
    });
  }

  mostWaiting() {
    this.waitingMost ??= new WeakMap();
    let most = 1;
    for (const side of this.sides) {
      if (!this.waitingMost.has(side)) this.waitingMost.set(side, largest(side.film.rows.waiting));
      most = Math.max(most, this.waitingMost.get(side));
    }
    return most;
  }

  drawFigures(pen, box, side, now, ns) {
    const { words } = this;
    const { colors } = pen;
    const figures = [
      [words.count(side.finishedAt(ns)), words.text("compare.finished", {
        n: side.film.header.requests })],
      [words.count(side.throughputAt(ns)), words.text("compare.throughput")],
      [`${words.count(100 * side.busyAt(ns))} %`, words.text("compare.busy")],
    ];
    const share = [0, 0.33, 0.66];
    const tight = box.w < 460;
    figures.forEach(([number, unit], i) => {
      const x = box.x + box.w * share[i];
      const w = pen.text(number, x, box.y, { size: tight ? 24 : 32, weight: 700 });
      pen.text(unit, x + w + 7, box.y, {
        size: 13, color: colors.muted, most: box.w * 0.33 - w - 10,
      });
    });
  }

  drawLane(pen, box, side, names, ns, x) {
    const { words } = this;
    const { colors } = pen;
    const { film } = side;
    const plot = this.boxes.axis;
    pen.text(names.short ?? names.title, box.x, box.y + 22, { size: 14, weight: 700, most: plot.x - 6 });
    pen.text(words.text("compare.slots", { n: side.slots }), box.x, box.y + 41, {
      size: 13, color: colors.muted,
    });
    let lastX = -10;
    for (const at of side.arrivals) {
      if (x(at) - lastX > 1.5) pen.arrival(x(at), box.y - 7, 4);
      lastX = x(at);
    }
    if (this.few) this.drawSeats(pen, box, plot, side, ns, x);
    else this.drawBatchStrip(pen, box, plot, side, ns, x);
    const end = film.header.end_ns;
    pen.rect(x(end) - 1.5, box.y - 2, 3, box.h, colors.ink);
    const text = words.text("compare.all_finished", { clock: end });
    const w = pen.width(text, 13, 600);
    const beside = x(end) + w + 12 < plot.x + plot.w;
    const middle = beside ? box.y + box.h / 2 - 6 : box.y + SEAT * 0.5 - 2;
    const left = beside ? x(end) + 9 : x(end) - w - 9;
    pen.box(left - 4, middle - 9, w + 8, 18, { radius: 3, fill: colors.panel });
    pen.text(text, left, middle + 5, { size: 13, weight: 600 });
  }

  /** Who sat where: what is past is filled, what is to come is dashed. */
  drawSeats(pen, box, plot, side, ns, x) {
    const { colors } = pen;
    const { film } = side;
    const c = pen.context;
    for (let slot = 0; slot < side.slots; slot++) {
      const y = box.y + slot * SEAT;
      pen.rect(plot.x, y, plot.w, SEAT - 2, colors.panel);
      const upTo = Math.min(ns, film.header.end_ns);
      pen.area("idle", x(film.header.start_ns), y, x(upTo) - x(film.header.start_ns), SEAT - 2);
    }
    for (const seat of side.seats) {
      const y = box.y + seat.slot * SEAT;
      const until = Math.min(seat.end, ns);
      for (const [phase, from, to] of seat.parts) {
        if (from < ns) pen.area(phase, x(from), y, x(Math.min(to, ns)) - x(from), SEAT - 2);
      }
      const name = film.label(seat.request);
      const past = x(until) - x(seat.start);
      if (seat.start < ns) {
        pen.rect(x(seat.start) - 0.5, y, 1.2, SEAT - 2, colors.ground);
        const size = 13;
        if (past > pen.width(name, size, 600) + 8 && seat.kind !== KEPT) {
          const decode = seat.parts.find((part) => part[0] === "decode");
          const left = decode && decode[1] < ns ? x(decode[1]) : x(seat.start);
          if (x(until) - left > pen.width(name, size, 600) + 4) {
            pen.text(name, (left + x(until)) / 2, y + 17, {
              size, weight: 600, align: "center", color: colors.onDark,
            });
          }
        }
      }
      if (seat.end > ns && seat.kind !== KEPT) {
        const left = Math.max(x(seat.start), x(ns));
        const w = x(seat.end) - left;
        c.setLineDash([4, 3]);
        pen.box(left + 0.5, y + 0.5, w - 1, SEAT - 3, { stroke: colors.decode, width: 1.2 });
        c.setLineDash([]);
        if (seat.start >= ns && w > pen.width(name, 13) + 6) {
          pen.text(name, left + w / 2, y + 17, {
            size: 13, align: "center", color: colors.decode,
          });
        }
      }
    }
  }

  drawBatchStrip(pen, box, plot, side, ns, x) {
    const { colors } = pen;
    const { film } = side;
    const { rows, series } = film;
    pen.rect(plot.x, box.y, plot.w, box.h, colors.panel);
    const last = film.length - 1;
    const strip = {
      y: box.y, h: box.h, most: Math.max(...this.sides.map((s) => s.mostRunning)),
      layers: [
        ["decode", (i) => rows.running[i] - rows.prefill_requests[i]],
        ["recompute", (i) => series.recompute[i]],
        ["prefill", (i) => rows.prefill_requests[i] - series.recompute[i]],
      ],
    };
    const c = pen.context;
    const paint = (from, to, alpha) => {
      c.save();
      c.beginPath();
      c.rect(from, box.y, to - from, box.h);
      c.clip();
      drawAreas(pen, plot, strip, film, x, 0, last, alpha);
      c.restore();
    };
    paint(plot.x, x(ns), 0.86);
    paint(x(ns), plot.x + plot.w, 0.25);
  }

  drawNow(pen, at, top, bottom, ns) {
    const { colors } = pen;
    const { words } = this;
    const plot = this.boxes.axis;
    pen.rect(at - 1, top, 2, bottom - top, colors.ink);
    const step = niceStep((this.timeOf(this.frames - 1) - this.timeOf(0)) / 400);
    const decimals = Math.max(2, Math.min(4, Math.ceil(-Math.log10(step / 1e9))));
    const text = `${words.fixed(ns / 1e9, decimals)} ${words.text("unit.s")}`;
    const w = pen.width(text, 14, 700) + 20;
    const middle = Math.max(plot.x + w / 2, Math.min(at, plot.x + plot.w - w / 2));
    pen.box(middle - w / 2, bottom + 1, w, 20, { radius: 4, fill: colors.ink });
    pen.text(text, middle, bottom + 16, {
      size: 14, weight: 700, align: "center", color: colors.ground,
    });
  }

  // -- telling ----------------------------------------------------------------------------------

  say() {
    if (!this.frames) return this.words.text("why.nothing");
    const ns = this.timeOf(this.frame);
    const parts = this.sides.map((side, i) => {
      const now = side.at(ns);
      const title = this.options.sides[i].title;
      const finished = `${side.finishedAt(ns)} ${this.words.text("compare.finished", {
        n: side.film.header.requests })}`;
      const waiting = `${this.words.text("compare.waiting")} ${now.state?.waiting.length ?? 0}`;
      return `${title}: ${finished}, ${waiting}`;
    });
    return `${this.words.text("compare.clock")} ${this.words.time(ns)}. ${parts.join(". ")}`;
  }

  view() {
    return { at_s: this.timeOf(this.frame) / 1e9, speed: this.speed, pace: this.pace };
  }

  fileName() {
    return this.options.title || "iteration-lab-compare";
  }

  async wholeData() {
    return this.host.pack({ ...this.options, at_s: this.timeOf(this.frame) / 1e9,
      speed: this.speed, theme: this.theme.name }, this.raw);
  }
}

/** One of the two: its film, its slots, its figures up to a moment. */
class Side {
  constructor(film) {
    this.film = film;
    const peak = largest(film.rows.running);
    this.slots = film.header.slots || peak;
    this.mostRunning = Math.max(1, peak);
    this.seat = assignSlots(film);
    this.arrivals = Float64Array.from(film.requests.arrival_ns).filter((ns) => ns >= 0).sort();
    this.firstArrival = this.arrivals[0] ?? 0;
    this.runArea = new Float64Array(film.length + 1);
    for (let i = 0; i < film.length; i++) {
      const busy = film.rows.running[i] * (film.endNs[i] - film.startNs[i]);
      this.runArea[i + 1] = this.runArea[i] + busy;
    }
    this.ends = Float64Array.from(film.requests.end_ns)
      .filter((ns, i) => ns >= 0 && film.requests.status[i] === 1).sort();
    this.seats = this.slots <= FEW_SLOTS ? this.collectSeats() : [];
  }

  slotOf(stay) {
    return this.seat[stay];
  }

  /** {row, state, before, ended} at a moment. */
  at(ns) {
    const { film } = this;
    if (!film.length || ns < film.startNs[0]) return { state: null, before: true };
    if (ns >= film.endNs[film.length - 1]) return { state: null, ended: true };
    const row = film.rowAt(ns);
    if (film.startNs[row] > ns) return { state: null };
    return { row, state: film.stateAt(row) };
  }

  finishedAt(ns) {
    return upperBound(this.ends, ns);
  }

  /** Iterations that had ended by then, and the share of the one under way. */
  progress(ns) {
    const { film } = this;
    const row = upperBound(film.endNs, ns);
    if (row >= film.length) return [film.length, 0];
    const share = (ns - film.startNs[row]) / (film.endNs[row] - film.startNs[row]);
    return [row, Math.max(0, share)];
  }

  throughputAt(ns) {
    const { film } = this;
    const until = Math.min(ns, film.header.end_ns);
    const seconds = (until - film.header.start_ns) / 1e9;
    return seconds > 0 ? film.emittedBefore[this.progress(ns)[0]] / seconds : 0;
  }

  busyAt(ns) {
    const { film } = this;
    const [row, share] = this.progress(ns);
    const under = row < film.length ? (this.runArea[row + 1] - this.runArea[row]) * share : 0;
    const until = Math.min(ns, film.header.end_ns);
    const whole = (until - film.header.start_ns) * this.slots;
    return whole > 0 ? (this.runArea[row] + under) / whole : 0;
  }

  collectSeats() {
    const { film } = this;
    const { stays, chunks, decodes } = film;
    return Array.from({ length: stays.request.length }, (_, i) => {
      const request = stays.request[i];
      const first = film.startNs[stays.first[i]];
      const end = film.endNs[Math.max(stays.first[i], stays.end[i] - 1)];
      const parts = [];
      const inside = (row) => row >= stays.first[i] && row < stays.end[i];
      for (const chunk of film.chunksOf[request]) {
        if (!inside(chunks.row[chunk])) continue;
        const again = chunks.first_token[chunk] < stays.known_before[i];
        const last = chunks.row[chunk] + chunks.iterations[chunk] - 1;
        parts.push([again ? "recompute" : "prefill", film.startNs[chunks.row[chunk]],
          film.endNs[last]]);
      }
      for (const run of film.decodesOf[request]) {
        if (!inside(decodes.row[run])) continue;
        const last = film.rowOfTick[decodes.end_tick[run] - 1 - film.header.ticks_before];
        parts.push(["decode", film.startNs[decodes.row[run]], film.endNs[last]]);
      }
      if (stays.kind[i] === KEPT) parts.push(["kept", first, end]);
      return { slot: this.seat[i], request, kind: stays.kind[i], start: first, end, parts };
    });
  }
}

function largest(values) {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}

/** The lowest free slot for each stay in the order in which they begin. */
function assignSlots(film) {
  const { stays } = film;
  const freeFrom = [];
  const lastOf = new Map();
  return Array.from({ length: stays.request.length }, (_, i) => {
    const request = stays.request[i];
    if (stays.kind[i] === KEPT && lastOf.has(request)) {
      freeFrom[lastOf.get(request)] = stays.end[i];
      return lastOf.get(request);
    }
    let slot = freeFrom.findIndex((row) => row <= stays.first[i]);
    if (slot < 0) slot = freeFrom.length;
    freeFrom[slot] = stays.end[i];
    lastOf.set(request, slot);
    return slot;
  });
}
