// What a single film and a comparison share: the clock that plays, controls, keyboard, screen
// reader, lecture mode and export. A subclass says what a frame is and draws it.

import { Controls, ITERATIONS_PER_S, SPEEDS } from "./controls.js";
import { el, icon, paintCanvas } from "./dom.js";
import { downloadBlob, recordCanvas, standaloneHtml } from "./export.js";
import { NS, lowerBound, upperBound } from "./film.js";
import { Pen } from "./pen.js";
import { listenForSpace } from "./space.js";
import { readTheme } from "./theme.js";
import { Words } from "./words.js";

const HOLD_MS = 1200; // how long an event stays when playback slows at events
const REPORT_MS = 120; // steps in quick succession are reported once
const LECTURE_WIDTH = 900; // units across the stage in lecture mode

export class BasePlayer {
  constructor(root, host) {
    this.root = root;
    this.host = host; // report(view), want(row), source()
    this.options = {};
    this.frame = 0;
    this.playing = false;
    this.speed = 1;
    this.pace = "iterations";
    this.atEvents = "slow";
    this.kind = "any";
    this.followed = -1;
    this.lecture = false;
    this.hits = [];
    this.words = new Words("en");
    this.holdUntil = 0;
    this.build();
  }

  // -- to be said by subclasses -----------------------------------------------------------------

  /* frames, timeOf(frame), frameAt(ns), marks(kind), drawStage(pen, width), say(), fileName() */

  // -- building ---------------------------------------------------------------------------------

  build() {
    this.canvas = el("canvas", { class: "picture", role: "img" });
    this.range = el("input", {
      type: "range", class: "range", min: 0, step: 1,
      oninput: () => this.seek(Number(this.range.value)),
      onchange: () => this.report(),
      onfocus: () => this.refocus(true),
      onblur: () => this.refocus(false),
    });
    this.controls = new Controls(this);
    this.live = el("div", { class: "spoken", "aria-live": "polite", role: "status" });
    this.message = el("div", { class: "message", hidden: true });
    this.leave = el("button", { type: "button", class: "plain leave", hidden: true,
      onclick: () => this.setLecture(false) }, icon("close"));
    this.dialog = el("dialog", { class: "help" });
    this.stage = el("section", { class: "stage", tabindex: 0, role: "group" },
      el("div", { class: "picture-holder" }, this.canvas, this.range, this.message),
      this.controls.root);
    this.lab = el("div", { class: "lab" }, this.leave, this.stage, this.live, this.dialog);
    // Its transition ends when a theme variable changes: the only sign of it that there is.
    this.sensor = el("span", { class: "theme-sensor", "aria-hidden": "true" });
    this.lab.append(this.sensor);
    this.root.append(this.lab);
    this.listen();
  }

  listen() {
    this.stopped = new AbortController();
    const { signal } = this.stopped;
    this.lab.addEventListener("keydown", (event) => this.onKey(event), { signal });
    listenForSpace(this, signal);
    for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) {
      this.canvas.addEventListener(name, (event) => this.onPointer(event), { signal });
    }
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1 : -1);
    }, { signal, passive: false });
    this.sensor.addEventListener("transitionend", () => this.retheme(), { signal });
    matchMedia("(prefers-color-scheme: dark)")
      .addEventListener("change", () => this.retheme(), { signal });
    document.fonts?.addEventListener("loadingdone", () => this.refont(), { signal });
    document.addEventListener("fullscreenchange", () => {
      if (!document.fullscreenElement && this.lecture) this.setLecture(false);
    }, { signal });
    document.addEventListener("visibilitychange", () => (this.lastTick = 0), { signal });
    globalThis.addEventListener("resize", () => this.invalidate(), { signal });
    this.observer = new ResizeObserver(() => this.invalidate());
    this.observer.observe(this.lab);
    this.observer.observe(this.stage);
    document.addEventListener("click", (event) => {
      if (!event.composedPath().includes(this.controls.menu.parentElement)) {
        if (!this.controls.menu.hidden) this.controls.toggleMenu(false);
      }
    }, { signal });
  }

  destroy() {
    this.pause(false);
    this.stopped.abort();
    this.observer.disconnect();
    cancelAnimationFrame(this.ticket);
    this.lab.remove();
  }

  // -- options ----------------------------------------------------------------------------------

  /** Options that a page gives. Speed, pace and the like are where it starts; then they are the
   * learner's. Language, theme and lecture mode follow the page whenever it says something new. */
  setOptions(options) {
    const before = this.options;
    const first = before.mode === undefined;
    this.options = options;
    if (first || options.language !== before.language) this.words = new Words(options.language);
    if (first) {
      if (SPEEDS.includes(options.speed)) this.speed = options.speed;
      this.pace = options.pace ?? this.pace;
      this.atEvents = options.at_events ?? this.atEvents;
      this.kind = options.kind ?? this.kind;
    }
    this.lab.lang = this.words.locale;
    this.theme = readTheme(this.lab, options.theme);
    this.lab.dataset.theme = this.theme.name;
    this.pens = new WeakMap();
    if ((options.lecture ?? false) !== (before.lecture ?? false)) this.setLecture(options.lecture);
  }

  retheme() {
    this.theme = readTheme(this.lab, this.options.theme);
    this.lab.dataset.theme = this.theme.name;
    this.pens = new WeakMap();
    this.renew();
  }

  refont() {
    this.pens = new WeakMap();
    this.invalidate();
  }

  /** Everything that depends on words, theme or film. */
  renew() {
    this.controls.reset();
    this.stage.setAttribute("aria-label", this.words.text("say.stage", { n: this.frames }));
    this.range.setAttribute("aria-label", this.words.text("control.scrub"));
    this.range.max = Math.max(this.frames - 1, 0);
    this.leave.setAttribute("aria-label", this.words.text("control.leave"));
    this.leave.title = this.words.text("control.leave");
    this.buildHelp();
    this.invalidate();
  }

  // -- moving -----------------------------------------------------------------------------------

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.frames < 2) return;
    if (this.frame >= this.frames - 1) this.moveTo(0);
    this.playing = true;
    this.lastTick = 0;
    this.owed = 0;
    this.clock = this.timeOf(this.frame);
    this.holdUntil = 0;
    this.controls.update();
    this.invalidate();
  }

  pause(report = true) {
    if (!this.playing) return;
    this.playing = false;
    this.controls.update();
    this.invalidate();
    if (report) this.settle();
  }

  /** One iteration forward (1) or back (-1). */
  step(direction) {
    this.pause(false);
    this.seek(this.frame + direction);
    this.report();
  }

  seek(frame) {
    this.playing = false;
    this.controls.update();
    this.moveTo(frame);
  }

  moveTo(frame) {
    const bounded = Math.max(0, Math.min(Math.round(frame), this.frames - 1));
    if (bounded !== this.frame) {
      this.frame = bounded;
      this.arrived = true;
    }
    this.invalidate();
  }

  /** To the next moment of the chosen kind, forward or back. */
  jump(direction) {
    this.pause(false);
    const rows = this.marks(this.kind);
    const at = direction > 0
      ? upperBound(rows, this.frame) : lowerBound(rows, this.frame) - 1;
    if (at < 0 || at >= rows.length) {
      this.speak(this.words.text("say.no_more", { kind: this.words.text(`kind.${this.kind}`) }));
      return;
    }
    this.seek(rows[at]);
    this.report();
  }

  hasMarks(kind) {
    return this.marks(kind).length > 0;
  }

  setSpeed(speed) {
    this.speed = speed;
    this.controls.update();
    this.report();
  }

  setKind(kind) {
    this.kind = kind;
    this.controls.update();
  }

  setPace(pace) {
    this.pace = pace;
    this.clock = this.timeOf(this.frame);
    this.controls.reset();
    this.report();
  }

  follow(request) {
    this.followed = request === this.followed ? -1 : request;
    this.invalidate();
    this.report();
  }

  zoom() {}

  // -- playing ----------------------------------------------------------------------------------

  invalidate() {
    if (!this.ticket) this.ticket = requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    this.ticket = 0;
    if (this.playing) {
      const elapsed = this.lastTick ? Math.min(now - this.lastTick, 250) : 0;
      this.lastTick = now;
      if (now >= this.holdUntil) this.advance(elapsed, now);
    }
    this.draw();
    if (this.playing) this.invalidate();
  }

  advance(elapsed, now) {
    let target = this.frame;
    if (this.pace === "time") {
      this.clock += (elapsed / 1000) * this.speed * this.timeRate();
      target = this.frameAt(this.clock);
      // A pause of the engine is not waited out.
      const idle = target === this.frame && this.gapAfter(target);
      if (idle && this.clock > this.endOf(target)) {
        target = this.frame + 1;
        this.clock = Math.max(this.clock, this.timeOf(target));
      }
    } else {
      this.owed += (elapsed / 1000) * this.speed * ITERATIONS_PER_S;
      const steps = Math.floor(this.owed);
      this.owed -= steps;
      target = this.frame + steps;
    }
    target = Math.min(target, this.frames - 1);
    if (target <= this.frame) return;
    const event = this.atEvents === "play" ? -1 : this.eventWithin(this.frame, target);
    if (event >= 0) {
      target = event;
      this.clock = this.timeOf(event);
      this.owed = 0;
    }
    this.moveTo(target);
    if (event >= 0 && this.atEvents === "pause") this.pause();
    else if (event >= 0) this.holdUntil = now + HOLD_MS / Math.sqrt(Math.max(this.speed, 1));
    if (target >= this.frames - 1) {
      if (this.options.loop && !this.theme.still) this.restart(now);
      else this.pause();
    }
  }

  restart(now) {
    this.holdUntil = now + 2500;
    this.clock = this.timeOf(0);
    this.owed = 0;
    this.again = true;
  }

  timeRate() {
    const whole = this.timeOf(this.frames - 1) - this.timeOf(0);
    return this.options.film_s ? whole / this.options.film_s : NS;
  }

  /** The first frame after `from`, up to `to`, with a moment of the chosen kind; -1: none. */
  eventWithin(from, to) {
    const rows = this.marks(this.kind);
    const at = upperBound(rows, from);
    return at < rows.length && rows[at] <= to ? rows[at] : -1;
  }

  // -- drawing ----------------------------------------------------------------------------------

  pen(canvas, theme, ratio) {
    let pen = this.pens.get(canvas);
    if (!pen || pen.scale !== ratio) {
      pen = new Pen(canvas.getContext("2d"), theme, ratio);
      this.pens.set(canvas, pen);
    }
    pen.lastFont = null; // a resized canvas forgets its font
    return pen;
  }

  /** Paint a small canvas of the inspector. */
  paint(canvas, width, height, draw) {
    paintCanvas(canvas, (...args) => this.pen(...args), this.theme, draw, width, height);
  }

  /** Units across the stage and CSS pixels per unit. */
  measure() {
    const css = Math.max(280, this.stage.clientWidth);
    if (this.lecture) return { css, scale: css / Math.min(LECTURE_WIDTH, css) };
    return { css, scale: Math.max(1, Math.min(1.3, css / 900)) };
  }

  draw() {
    // The inspector goes below the stage where both would be cramped (or at high zoom).
    this.lab.classList.toggle("narrow", this.lab.clientWidth < 960);
    this.lab.classList.toggle("tight", this.stage.clientWidth < 800);
    if (this.again && this.playing && performance.now() >= this.holdUntil) {
      this.again = false;
      this.frame = 0;
    }
    const began = performance.now();
    const { css, scale } = this.measure();
    if (!this.stage.clientWidth) return;
    this.hits = [];
    const width = css / scale;
    const height = this.layout(width, scale);
    this.canvas.style.height = `${height * scale}px`;
    paintCanvas(this.canvas, (...args) => this.pen(...args), this.theme,
      (pen) => this.drawStage(pen, width, height), width, height, scale);
    this.unit = scale;
    this.lab.style.setProperty("--scale", this.lecture ? 1 : Math.min(scale, 1.2));
    this.range.value = String(this.frame);
    this.placeRange(scale);
    this.drawnMs = performance.now() - began;
    if (!this.playing && this.arrived !== false) {
      this.arrived = false;
      this.settled();
    }
    this.host.drawn?.(this);
  }

  placeRange(scale) {
    const box = this.boxes?.scrub;
    if (!box) return;
    Object.assign(this.range.style, {
      left: `${box.x * scale}px`, top: `${box.y * scale}px`,
      width: `${box.w * scale}px`, height: `${box.h * scale}px`,
    });
  }

  refocus(focused) {
    this.scrubFocused = focused;
    this.invalidate();
  }

  hit(box, action, under = false) {
    if (under) this.hits.unshift({ box, ...action });
    else this.hits.push({ box, ...action });
  }

  // -- pointer and keyboard ---------------------------------------------------------------------

  place(event) {
    const frame = this.canvas.getBoundingClientRect();
    return [(event.clientX - frame.left) / this.unit, (event.clientY - frame.top) / this.unit];
  }

  hitAt(x, y, holds = () => true) {
    for (let i = this.hits.length - 1; i >= 0; i--) {
      const { box } = this.hits[i];
      const inside = x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h;
      if (inside && holds(this.hits[i])) return this.hits[i];
    }
    return null;
  }

  onPointer(event) {
    const [x, y] = this.place(event);
    if (event.type === "pointerdown") {
      const hit = this.hitAt(x, y);
      const moves = hit && (hit.scrub || hit.seek);
      if (moves) {
        this.dragging = hit;
        this.canvas.setPointerCapture(event.pointerId);
        this.drag(x);
      } else if (hit && hit.request >= 0) {
        this.follow(hit.request);
      }
      this.stage.focus({ preventScroll: true });
    } else if (event.type === "pointermove") {
      if (this.dragging) this.drag(x);
      const hit = this.hitAt(x, y);
      this.canvas.style.cursor = hit ? (hit.request >= 0 ? "pointer" : "ew-resize") : "default";
    } else if (this.dragging) {
      this.dragging = null;
      this.report();
    }
  }

  drag(x) {
    const to = this.dragging.scrub ?? this.dragging.seek;
    this.seek(to(x));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.dialog.open) return;
    const target = event.composedPath()[0];
    const tag = target.tagName;
    const types = tag === "SELECT" || (tag === "INPUT" && target.type === "checkbox");
    if (types) return;
    const shift = event.shiftKey;
    const actions = {
      ArrowRight: () => (shift ? this.jump(1) : this.step(1)),
      ArrowLeft: () => (shift ? this.jump(-1) : this.step(-1)),
      ArrowUp: () => this.faster(1),
      ArrowDown: () => this.faster(-1),
      Home: () => this.step(-Infinity),
      End: () => this.step(Infinity),
      PageUp: () => this.step(-10),
      PageDown: () => this.step(10),
      "+": () => this.zoom(-1),
      "=": () => this.zoom(-1),
      "-": () => this.zoom(1),
      l: () => this.setLecture(!this.lecture),
      L: () => this.setLecture(!this.lecture),
      "?": () => this.help(true),
      Escape: () => (this.lecture ? this.setLecture(false) : this.follow(-1)),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  faster(direction) {
    const at = SPEEDS.indexOf(this.speed) + direction;
    if (at >= 0 && at < SPEEDS.length) this.setSpeed(SPEEDS[at]);
  }

  // -- telling ----------------------------------------------------------------------------------

  /** After a pause: inspector, page and screen reader learn where the film stands. */
  settle() {
    this.arrived = true;
    this.invalidate();
    this.report(0);
  }

  settled() {
    this.speak(this.say());
    this.canvas.setAttribute("aria-label", this.say());
    this.range.setAttribute("aria-valuetext", this.say());
  }

  speak(text) {
    this.live.textContent = text;
  }

  report(delay = REPORT_MS) {
    clearTimeout(this.reportTimer);
    this.reportTimer = setTimeout(() => this.host.report(this.view()), delay);
  }

  note(text, ms = 2500) {
    this.message.textContent = text;
    this.message.hidden = !text;
    clearTimeout(this.noteTimer);
    if (ms) this.noteTimer = setTimeout(() => (this.message.hidden = true), ms);
  }

  // -- lecture mode -----------------------------------------------------------------------------

  setLecture(on) {
    this.lecture = Boolean(on);
    this.lab.classList.toggle("lecture", this.lecture);
    this.leave.hidden = !this.lecture;
    if (this.lecture) this.lab.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement) document.exitFullscreen?.().catch(() => {});
    if (this.frames) this.renew();
    this.stage.focus({ preventScroll: true });
  }

  /** Units of height that the stage may take in lecture mode. */
  lectureHeight(scale) {
    const taken = this.controls.root.offsetHeight + 34;
    return (globalThis.innerHeight - taken) / scale;
  }

  // -- help -------------------------------------------------------------------------------------

  buildHelp() {
    const { words } = this;
    const row = (keys, key) => el("div", { class: "help-row" },
      el("dt", {}, ...keys.flatMap((k, i) => [i ? " " : "", el("kbd", {}, k)])),
      el("dd", {}, words.text(key)));
    this.dialog.setAttribute("aria-label", words.text("control.help"));
    this.dialog.replaceChildren(
      el("h2", {}, words.text("help.title")),
      el("p", {}, words.text("help.lead")),
      el("dl", {},
        row([words.text("control.space")], "help.space"),
        row(["←", "→"], "help.arrows"),
        row(["Shift+←", "Shift+→"], "help.shift"),
        row(["Home", "End"], "help.home"),
        row(["↓", "↑"], "help.speed"),
        row(["−", "+"], "help.zoom"),
        row(["L"], "help.lecture"),
        row(["Esc"], "help.escape"),
        row(["?"], "help.question")),
      el("button", { type: "button", class: "button", onclick: () => this.help(false) },
        words.text("control.close")));
  }

  help(open) {
    if (open && !this.dialog.open) this.dialog.showModal();
    else if (!open) this.dialog.close();
  }

  // -- export -----------------------------------------------------------------------------------

  downloadPicture() {
    this.draw();
    const picture = document.createElement("canvas");
    const margin = Math.round(24 * (this.canvas.width / Math.max(this.canvas.clientWidth, 1)));
    picture.width = this.canvas.width + 2 * margin;
    picture.height = this.canvas.height + 2 * margin;
    const c = picture.getContext("2d");
    c.fillStyle = this.theme.colors.ground;
    c.fillRect(0, 0, picture.width, picture.height);
    c.drawImage(this.canvas, margin, margin);
    picture.toBlob((blob) => downloadBlob(blob, `${this.fileName()}.png`), "image/png");
  }

  async downloadFilm() {
    const data = await this.wholeData();
    const html = standaloneHtml(this.host.source(), this.host.style(), data, this.fileName(),
      this.words.locale);
    downloadBlob(new Blob([html], { type: "text/html" }), `${this.fileName()}.html`);
  }

  record() {
    if (this.recorder) {
      this.recorder.stop();
      return;
    }
    this.recorder = recordCanvas(this.canvas, this.theme.colors.ground, (blob) => {
      this.recorder = null;
      this.controls.update();
      downloadBlob(blob, `${this.fileName()}.webm`);
      this.note(this.words.text("say.saved"));
    });
    this.note(this.words.text("say.recording"));
    this.controls.update();
    this.play();
  }
}
