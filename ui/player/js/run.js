// The film of one run: stage, strips and inspector.

import { BasePlayer } from "./base.js";
import { drawBatch } from "./draw_batch.js";
import { drawHeader } from "./draw_header.js";
import { drawKv } from "./draw_kv.js";
import { drawHost, drawQueue } from "./draw_queue.js";
import { drawSaid } from "./draw_said.js";
import { drawScrub, rowOfTime, timeOfRow } from "./draw_scrub.js";
import { drawStrips, usualSpan } from "./draw_strips.js";
import { Film, upperBound } from "./film.js";
import { Inspector } from "./inspector.js";
import { layOut } from "./layout.js";
import { decisionsOf, headlineOf } from "./sentences.js";

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
    const opening = !this.film;
    const same = options.digests[0] === this.digest;
    const movedTo = this.options.move_to;
    this.setOptions(options);
    if (!same) {
      this.raw.clear();
      this.digest = options.digests[0];
    }
    this.raw.set(options.first ?? 0, films[0]);
    if (!same) {
      this.open(films[0]);
      this.span = usualSpan(this.film);
    }
    if (opening) {
      this.frame = options.iteration ?? 0;
      this.followLabel(options.request);
    }
    if (Number.isInteger(options.move_to) && options.move_to !== movedTo) {
      this.pause(false);
      this.frame = options.move_to;
    }
    this.arrived = true;
    this.lab.classList.toggle("no-why", options.inspector === false);
    this.note("", 0);
    this.pending = undefined;
    this.moveTo(this.frame);
    this.renew();
    if (opening && options.autoplay && !this.theme.still) this.play();
  }

  open(bytes) {
    this.film = new Film(bytes);
    this.followLabel(this.followedLabel);
  }

  renew() {
    this.inspector.reset();
    super.renew();
  }

  followLabel(label) {
    this.followed = label ? this.film.labels.indexOf(label) : -1;
    this.followedLabel = label;
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
    const first = firsts[upperBound(firsts, this.frame) - 1];
    const known = this.raw.get(first);
    if (known) {
      this.open(known);
      this.renew();
    } else if (this.pending !== first) {
      this.pending = first;
      this.note(this.words.text("say.loading"), 0);
      this.host.want(this.frame);
    }
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
    this.controls.root.hidden = !this.film.length;
    this.range.hidden = !this.film.length;
    if (!this.film.length) {
      this.boxes = {};
      return 240;
    }
    const lecture = this.lecture;
    const shown = lecture ? this.panels.slice(-2) : this.panels;
    const strips = lecture ? ["batch"] : ["batch", "kv", "waiting"];
    const said = lecture; // there the inspector is hidden
    const plain = layOut(width, { panels: shown, strips, said });
    let middle = this.film.swaps() && !lecture && shown.includes("kv") ? 312 : 292;
    if (lecture) {
      middle = Math.max(160, Math.min(420, 292 + this.lectureHeight(scale) - plain.height));
    }
    this.boxes = layOut(width, { panels: shown, strips, said, middle });
    this.shownStrips = strips;
    return this.boxes.height;
  }

  drawStage(pen) {
    const { film, words, boxes } = this;
    if (!film.length) {
      pen.text(words.text("why.nothing"), 0, 40, { size: 16, most: boxes.width });
      return;
    }
    const state = film.stateAt(this.row);
    drawHeader(pen, boxes.header, film, state, words);
    if (boxes.said) drawSaid(pen, boxes.said, this.reads ? this.headline() : null, words);
    if (boxes.queue) drawQueue(pen, boxes.queue, film, state, words, this);
    if (boxes.batch) drawBatch(pen, boxes.batch, film, state, words, this);
    if (boxes.kv) this.drawMemory(pen, boxes.kv, state);
    if (boxes.strips) drawStrips(pen, boxes.strips, film, state, words, this);
    drawScrub(pen, boxes.scrub, film, state, words, this);
  }

  /** The decision in one sentence, told once for an iteration and language. */
  headline() {
    const key = `${this.digest} ${this.frame} ${this.words.language}`;
    if (this.headlineKey !== key) {
      this.headlineKey = key;
      this.lastHeadline = headlineOf(decisionsOf(this.film, this.row, this.words));
    }
    return this.lastHeadline;
  }

  /** Is there time to read: paused, or held at an event? */
  get reads() {
    return !this.playing || performance.now() < this.holdUntil;
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
    this.arrived = true; // what is spoken differs
    super.setLecture(on);
  }

  settled() {
    super.settled();
    this.inspector.update(this.row);
  }

  draw() {
    super.draw();
    // While it plays, the inspector follows where there is time to read.
    if (this.playing && this.reads) this.inspector.update(this.row);
    this.inspector.root.classList.toggle("stale", !this.reads);
  }

  // -- telling ----------------------------------------------------------------------------------

  say() {
    if (!this.film.length) return this.words.text("why.nothing");
    const state = this.film.stateAt(this.row);
    const frame = this.words.text("say.frame", {
      iteration: state.iteration, last: this.film.total - 1, clock: state.startNs,
      duration: state.endNs - state.startNs, running: state.running.length,
      waiting: state.waiting.length, used: state.used, blocks: this.film.header.kv_blocks,
    });
    if (!this.lecture) return frame;
    const told = this.headline();
    const plain = (spans) => spans.map((span) => span.text).join("");
    return `${frame} ${plain(told?.title ?? [])}: ${plain(told?.body ?? [])}`;
  }

  view() {
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
      request: this.followedLabel ?? undefined, first: 0, autoplay: false, lecture: false,
      theme: this.theme.name }, films);
  }

  until(holds) {
    return new Promise((resolve) => {
      const look = () => (holds() ? resolve() : setTimeout(look, 50));
      look();
    });
  }
}
