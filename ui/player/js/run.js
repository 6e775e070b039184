// The film of one run: stage, strips and inspector.

import { BasePlayer } from "./base.js";
import { drawBatch } from "./draw_batch.js";
import { drawHeader } from "./draw_header.js";
import { drawKv } from "./draw_kv.js";
import { drawHost, drawQueue } from "./draw_queue.js";
import { drawScrub, rowOfTime, timeOfRow } from "./draw_scrub.js";
import { drawStrips, usualSpan, visibleSpan } from "./draw_strips.js";
import { Film, lowerBound } from "./film.js";
import { Inspector } from "./inspector.js";
import { layOut } from "./layout.js";

export class RunPlayer extends BasePlayer {
  constructor(root, host) {
    super(root, host);
    this.panelNames = ["queue", "batch", "kv"];
    this.panels = this.panelNames;
    this.inspector = new Inspector(this);
    this.lab.insertBefore(this.inspector.root, this.live);
    this.raw = new Map(); // first row -> bytes of windows seen
  }

  // -- data -------------------------------------------------------------------------------------

  /** A window of a film; a new film keeps the position where it still exists. */
  setData(options, films) {
    const first = !this.film;
    const same = options.digests[0] === this.digest;
    const asked = options.iteration;
    const before = this.options;
    this.setOptions(options);
    if (!same) {
      this.raw.clear();
      this.digest = options.digests[0];
    }
    const bytes = films[0];
    if (!same || options.window !== this.windowIndex) {
      this.film = new Film(bytes);
      this.windowIndex = options.window;
      this.raw.set(this.film.first, bytes);
    }
    if (!same) {
      this.span = usualSpan(this.film);
      const label = this.followedLabel;
      this.followed = label ? this.film.labels.indexOf(label) : -1;
    } else if (this.followedLabel) {
      this.followed = this.film.labels.indexOf(this.followedLabel);
    }
    if (first && options.request) this.followed = this.film.labels.indexOf(options.request);
    const told = Number.isInteger(asked) && asked !== before.iteration && asked !== this.reported;
    if (first || told) this.frame = Number.isInteger(asked) ? asked : 0;
    this.frame = Math.max(0, Math.min(this.frame, this.frames - 1));
    this.arrived = true;
    this.lab.classList.toggle("no-why", options.inspector === false);
    this.note("", 0);
    this.inspector.reset();
    this.renew();
    if (first && options.autoplay && !this.theme.still) this.play();
    if (this.pending !== undefined && this.inWindow(this.pending)) this.pending = undefined;
  }

  get frames() {
    return this.film ? this.film.total : 0;
  }

  get row() {
    const local = this.frame - this.film.first;
    return Math.max(0, Math.min(local, this.film.length - 1));
  }

  inWindow(frame) {
    return frame >= this.film.first && frame < this.film.end;
  }

  timeOf(frame) {
    return timeOfRow(this.film, frame);
  }

  frameAt(ns) {
    return rowOfTime(this.film, ns);
  }

  endOf(frame) {
    return this.inWindow(frame) ? this.film.endNs[frame - this.film.first] : this.timeOf(frame);
  }

  gapAfter(frame) {
    return this.inWindow(frame + 1) && this.timeOf(frame + 1) > this.endOf(frame);
  }

  marks(kind) {
    return this.film.marks(kind);
  }

  /** A frame outside the window: show a known window, or ask the page for it. */
  moveTo(frame) {
    super.moveTo(frame);
    if (!this.film.length || this.inWindow(this.frame)) return;
    const firsts = this.film.header.windows.map((window) => window[0]);
    let index = lowerBound(firsts, this.frame);
    if (firsts[index] !== this.frame) index--;
    const known = this.raw.get(firsts[index]);
    if (known) {
      this.openWindow(known, index);
    } else if (this.pending === undefined || this.inWindow(this.pending)) {
      this.pending = this.frame;
      this.note(this.words.text("say.loading"), 0);
      this.host.want(this.frame);
    }
  }

  openWindow(bytes, index) {
    this.film = new Film(bytes);
    this.windowIndex = index;
    this.followed = this.followedLabel ? this.film.labels.indexOf(this.followedLabel) : -1;
    this.inspector.reset();
    this.controls.reset();
  }

  advance(elapsed, now) {
    if (this.inWindow(this.frame)) super.advance(elapsed, now);
  }

  follow(request) {
    super.follow(request);
    this.followedLabel = this.followed < 0 ? null : this.film.label(this.followed);
    this.arrived = true;
  }

  zoom(direction) {
    const whole = this.film.endNs[this.film.length - 1] - this.film.startNs[0];
    const factor = direction > 0 ? 2 : 0.5;
    this.span = Math.max(usualSpan(this.film) / 16, Math.min(this.span * factor, whole * 1.001));
    this.invalidate();
  }

  // -- drawing ----------------------------------------------------------------------------------

  layout(width, scale) {
    const lecture = this.lecture;
    const shown = lecture ? this.panels.slice(-2) : this.panels;
    const strips = lecture ? ["batch"] : ["batch", "kv", "waiting"];
    const plain = layOut(width, { panels: shown, strips });
    let middle = this.film.swaps() && !lecture && shown.includes("kv") ? 312 : 292;
    if (lecture) middle = Math.max(160, Math.min(420, 292 + this.lectureHeight(scale) - plain.height));
    this.boxes = layOut(width, { panels: shown, strips, middle });
    this.shownStrips = strips;
    return this.boxes.height;
  }

  drawStage(pen) {
    const { film, words, boxes } = this;
    if (!film.length) {
      pen.text(words.text("why.nothing"), 0, 40, { size: 16 });
      return;
    }
    const state = film.stateAt(this.row);
    drawHeader(pen, boxes.header, film, state, words);
    if (boxes.queue) drawQueue(pen, boxes.queue, film, state, words, this);
    if (boxes.batch) drawBatch(pen, boxes.batch, film, state, words, this);
    if (boxes.kv) this.drawMemory(pen, boxes.kv, state);
    if (boxes.strips) drawStrips(pen, boxes.strips, film, state, words, this);
    drawScrub(pen, boxes.scrub, film, state, words, this);
  }

  drawMemory(pen, box, state) {
    const { film, words } = this;
    const host = film.swaps() ? 62 : 0;
    drawKv(pen, { ...box, h: box.h - host }, film, state, words, this);
    if (host) drawHost(pen, { ...box, y: box.y + box.h - host + 10 }, film, state, words, this);
  }

  showPanel(name, on) {
    const chosen = new Set(this.panels);
    if (on) chosen.add(name);
    else if (chosen.size > 1) chosen.delete(name);
    this.panels = this.panelNames.filter((panel) => chosen.has(panel));
    if (this.lecture && this.panels.length > 2) {
      this.panels = this.panels.filter((panel) => panel === name || panel !== "queue").slice(0, 2);
      if (on && !this.panels.includes(name)) this.panels = [name, this.panels[0]];
    }
    this.controls.buildMenu();
    this.invalidate();
  }

  setLecture(on) {
    if (on && !this.lecture) {
      this.panelsBefore = this.panels;
      this.panels = ["batch", "kv"];
    } else if (!on && this.lecture && this.panelsBefore) {
      this.panels = this.panelsBefore;
    }
    super.setLecture(on);
  }

  settled() {
    super.settled();
    this.inspector.update(this.row);
  }

  draw() {
    super.draw();
    // While it plays, the inspector follows where there is time to read.
    if (this.playing && performance.now() < this.holdUntil) this.inspector.update(this.row);
    this.inspector.root.classList.toggle("stale",
      this.playing && performance.now() >= this.holdUntil);
  }

  // -- telling ----------------------------------------------------------------------------------

  say() {
    if (!this.film.length) return this.words.text("why.nothing");
    const state = this.film.stateAt(this.row);
    return this.words.text("say.frame", {
      iteration: state.iteration, last: this.film.total - 1, clock: state.startNs,
      duration: state.endNs - state.startNs, running: state.running.length,
      waiting: state.waiting.length, used: state.used, blocks: this.film.header.kv_blocks,
    });
  }

  view() {
    this.reported = this.frame;
    return {
      iteration: this.frame, speed: this.speed, pace: this.pace,
      request: this.followed < 0 ? null : this.film.label(this.followed),
    };
  }

  fileName() {
    return this.options.title || `iteration-lab-${this.film.header.policy}`;
  }

  /** The data of a standalone file: every window, asked for one by one where they are missing. */
  async wholeData() {
    const windows = this.film.header.windows;
    if (windows) {
      for (const [first] of windows) {
        if (this.raw.has(first)) continue;
        this.note(this.words.text("say.loading"), 0);
        this.host.want(first);
        await this.until(() => this.raw.has(first));
      }
    }
    this.note("", 0);
    const films = [...this.raw.entries()].sort((a, b) => a[0] - b[0]).map((entry) => entry[1]);
    return this.host.pack({ ...this.options, iteration: this.frame, speed: this.speed,
      window: 0, autoplay: false, theme: this.theme.name }, films);
  }

  until(holds) {
    return new Promise((resolve) => {
      const look = () => (holds() ? resolve() : setTimeout(look, 50));
      look();
    });
  }
}
