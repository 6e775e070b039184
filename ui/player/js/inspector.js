// The panel beside the film: why the iteration is as it is, the life of the request followed, and
// the legend. All of it is text of the page, so it can be read aloud, searched and copied.

import { el, icon, spanNodes } from "./dom.js";
import { WAITED, HOSTED, KEPT } from "./film.js";
import { refusalSpans, refusalStyle } from "./draw_strips.js";
import { decisionsOf } from "./sentences.js";

export class Inspector {
  constructor(player) {
    this.player = player;
    this.heading = el("h2", {});
    this.iteration = el("span", { class: "quiet" });
    this.list = el("ul", { class: "decisions", tabindex: 0 });
    this.life = el("section", { class: "life" });
    this.legend = el("section", { class: "legend" });
    this.root = el("aside", { class: "why" },
      el("div", { class: "why-head" }, this.heading, this.iteration),
      this.list, this.life, this.legend);
  }

  /** New words or a new film: headings and legend. */
  reset() {
    const { words } = this.player;
    this.heading.textContent = words.text("why.heading");
    this.root.setAttribute("aria-label", words.text("why.heading"));
    this.list.setAttribute("aria-label", words.text("why.heading"));
    this.lastKey = null;
    this.buildLegend();
  }

  update(row) {
    const { film, words, theme, followed } = this.player;
    if (!film.length) {
      this.showNothing();
      return;
    }
    const width = this.life.clientWidth;
    const key = [film.first, row, followed, words.language, theme.name, width].join(" ");
    if (key === this.lastKey) return;
    this.lastKey = key;
    this.iteration.textContent = words.text("why.iteration", { n: row + film.first });
    const items = decisionsOf(film, row, words).map((decision) => this.item(decision));
    this.list.replaceChildren(...items);
    this.list.scrollTop = 0;
    this.buildLife(row);
  }

  showNothing() {
    const { film, words } = this.player;
    this.iteration.textContent = "";
    const items = decisionsOf(film, 0, words).map((decision) => this.item(decision));
    this.list.replaceChildren(...items);
    this.life.replaceChildren();
    this.legend.replaceChildren();
  }

  item(decision) {
    const { player } = this;
    const title = el("h3", {}, ...spanNodes(decision.title));
    const item = el("li", { class: `tone-${decision.tone}` }, title);
    if (decision.event >= 0) item.dataset.event = decision.event;
    if (decision.body.length) item.append(el("p", {}, ...spanNodes(decision.body)));
    if (decision.request >= 0) {
      item.classList.add("can-follow");
      if (decision.request === player.followed) item.classList.add("followed");
      item.addEventListener("click", () => player.follow(decision.request));
    }
    return item;
  }

  // -- the life of the request followed ---------------------------------------------------------

  buildLife(row) {
    const { player } = this;
    const { film, words, followed } = player;
    if (followed < 0) {
      this.life.replaceChildren(el("p", { class: "quiet" }, words.text("life.none")));
      return;
    }
    const r = film.requests;
    const start = film.startNs[row];
    const arrival = r.arrival_ns[followed];
    const name = film.label(followed);
    const close = el("button", {
      type: "button", class: "plain", "aria-label": words.text("life.unfollow"),
      title: words.text("life.unfollow"), onclick: () => player.follow(-1),
    }, icon("close"));
    const title = el("h3", {}, words.text("life.title", { r: name }));
    if (arrival > film.endNs[row]) {
      this.life.replaceChildren(el("div", { class: "why-head" }, title, close),
        el("p", { class: "quiet" }, words.text("life.gone", { r: name })));
      return;
    }
    const gone = r.end_ns[followed] >= 0 && r.end_ns[followed] <= start;
    const until = gone ? r.end_ns[followed] : film.endNs[row];
    const age = (gone ? until : start) - arrival;
    const spoken = words.text("life.title", { r: name });
    const canvas = el("canvas", { role: "img", "aria-label": spoken });
    const ttft = film.ttftAt(followed, row);
    const facts = [
      ttft.given ? words.text("life.ttft", { ttft: ttft.ns }) : words.text("life.no_token"),
      words.text("life.tokens", {
        done: emittedBy(film, followed, row), output: r.output_tokens[followed],
      }),
    ];
    this.life.replaceChildren(
      el("div", { class: "why-head" }, title,
        el("span", { class: "quiet" }, gone
          ? words.text("life.finished") : words.text("life.since", { age: Math.max(0, age) })),
        close),
      canvas,
      el("p", { class: "quiet" }, facts.join(words.text("list.semicolon"))),
    );
    const width = Math.max(160, this.life.clientWidth);
    canvas.style.height = "46px";
    canvas.style.width = `${width}px`;
    player.paint(canvas, width, 46, (pen) => this.drawLife(pen, width, followed, until, row));
  }

  drawLife(pen, width, request, until, row) {
    const { film, words, theme } = this.player;
    const { colors } = theme;
    const from = film.requests.arrival_ns[request];
    const bound = from + film.slo.ttft;
    const x = (ns) => ((Math.min(ns, until) - from) / Math.max(until - from, 1)) * width;
    pen.rect(0, 6, width, 16, colors.track);
    for (const [phase, start, end] of lifeOf(film, request, row)) {
      if (start < until) pen.area(phase, x(start), 6, Math.max(x(end) - x(start), 0.8), 16);
    }
    for (const i of film.staysOf[request]) {
      const end = film.stays.end_ns[i];
      if (end >= until) continue;
      const next = film.waitsOf[request].find((w) => film.waits.first_ns[w] >= end - 1);
      if (next === undefined) continue;
      if (film.waits.kind[next] === WAITED) pen.preemption(x(end), 14, 5);
      else pen.swap(x(end), 14, true, 4.5);
    }
    if (bound < until) {
      pen.rect(x(bound) - 1, 0, 2, 27, colors.violated);
      const text = words.text("life.bound", { bound: film.slo.ttft });
      const half = pen.width(text, 12, 600) / 2;
      pen.text(text, Math.max(half, Math.min(x(bound), width - half)), 40, {
        size: 12, weight: 600, align: "center", color: colors.violated,
      });
    }
  }

  // -- legend -----------------------------------------------------------------------------------

  buildLegend() {
    const { player } = this;
    const { film, words } = player;
    const swatch = (paint, text) => {
      const canvas = el("canvas", { "aria-hidden": "true" });
      canvas.style.width = "16px";
      canvas.style.height = "14px";
      player.paint(canvas, 16, 14, paint);
      return el("span", { class: "key" }, canvas, text);
    };
    const area = (phase, key) => swatch((pen) => {
      pen.area(phase, 0.5, 0.5, 15, 13, 2);
      if (["waiting", "decode", "prefill", "recompute", "swap", "cached"].includes(phase)) return;
      pen.box(0.5, 0.5, 15, 13, { radius: 2, stroke: pen.colors.waiting, width: 0.8 });
    }, words.text(key ?? `phase.${phase}`));
    const mark = (name, key) => swatch((pen) => name(pen), words.text(key));
    const used = usedIn(film);
    const keys = [area("decode"), area("prefill")];
    if (used.recompute) keys.push(area("recompute"));
    if (used.cached) keys.push(area("cached"));
    if (used.swap) keys.push(area("swap"));
    if (used.stalled) keys.push(area("stalled"));
    if (used.kept) keys.push(area("kept"));
    if (used.reserved) keys.push(area("reserved"));
    keys.push(area("waiting"));
    keys.push(swatch((pen) => pen.box(0.8, 0.8, 14.4, 12.4, {
      radius: 2, stroke: pen.colors.free, fill: pen.colors.ground,
    }), words.text("phase.free")));
    keys.push(mark((pen) => pen.arrival(8, 7.5), "legend.arrival"));
    if (used.preempt) keys.push(mark((pen) => pen.preemption(8, 7), "legend.preempt"));
    if (used.swap) keys.push(mark((pen) => pen.swap(8, 7, true), "legend.swap_out"));
    if (used.reject) keys.push(mark((pen) => pen.rejection(8, 7), "legend.rejected"));
    keys.push(mark((pen) => pen.violation(8, 7.5, true), "legend.missed"));
    const rows = [el("div", { class: "keys" }, ...keys)];
    if (used.refusals.size) {
      rows.push(el("div", { class: "keys wide" },
        el("span", { class: "quiet" }, words.text("legend.refused")),
        ...[...used.refusals].map(([style, reason]) => area(style, `legend.${reason}`))));
    }
    rows.push(el("div", { class: "keys wide" },
      mark((pen) => pen.violation(8, 7.5, false), "legend.above")));
    this.legend.setAttribute("aria-label", words.text("legend.title"));
    this.legend.replaceChildren(...rows);
  }
}

/** What occurs in a film, so that the legend names nothing else. */
function usedIn(film) {
  if (film.used) return film.used;
  const happens = (...names) => film.events.event.some((code) =>
    names.includes(film.header.events[code]));
  const refusals = new Map();
  for (const span of refusalSpans(film)) {
    const style = refusalStyle(film, span.event);
    if (!refusals.has(style)) {
      refusals.set(style, film.header.reasons[film.events.reason[span.event]]);
    }
  }
  film.used = {
    recompute: film.rows.recompute_tokens.some((n) => n > 0),
    cached: film.events.cached_tokens.some((n) => n > 0),
    swap: happens("swap_out", "swap_in"),
    preempt: happens("preempt"),
    reject: happens("reject", "cancel"),
    reserved: film.header.holds === "life",
    kept: film.stays.kind.some((kind) => kind === KEPT),
    stalled: film.header.policy === "vllm-v0",
    refusals,
  };
  return film.used;
}

/** Output tokens of a request when an iteration starts. */
export function emittedBy(film, request, row) {
  const stay = film.stayAt(request, row);
  if (stay >= 0 && film.stays.kind[stay] !== KEPT) return film.member(stay, row).emitted;
  const r = film.requests;
  if (r.last_token_ns[request] >= 0 && r.last_token_ns[request] <= film.startNs[row]) {
    return r.status[request] === 1 ? r.output_tokens[request] : "–";
  }
  for (const i of film.waitsOf[request]) {
    if (film.waits.first[i] <= row && row < film.waits.end[i]) {
      return film.waits.tokens[i] - r.prompt_tokens[request];
    }
  }
  return 0;
}

/** A request's past as [phase, from, to] in ns: waiting, prefill, recompute, decode, swapped. */
export function lifeOf(film, request, row) {
  const parts = [];
  const { waits, stays, chunks, decodes } = film;
  for (const i of film.waitsOf[request]) {
    if (waits.first[i] > row && waits.first_ns[i] > film.endNs[row]) continue;
    parts.push([waits.kind[i] === HOSTED ? "swap" : "waiting", waits.first_ns[i], waits.end_ns[i]]);
  }
  for (const i of film.staysOf[request]) {
    if (stays.kind[i] === KEPT || stays.first[i] > row) continue;
    parts.push(["stalled", stays.first_ns[i], stays.end_ns[i]]);
  }
  const time = (at) => film.startNs[Math.max(0, Math.min(at, film.length - 1))];
  const endTime = (at) => film.endNs[Math.max(0, Math.min(at, film.length - 1))];
  for (const i of film.chunksOf[request]) {
    if (chunks.row[i] > row) break;
    const stay = film.stayAt(request, chunks.row[i]);
    const again = stay >= 0 && chunks.first_token[i] < stays.known_before[stay];
    parts.push([again ? "recompute" : "prefill", time(chunks.row[i]),
      endTime(chunks.row[i] + chunks.iterations[i] - 1)]);
  }
  for (const i of film.decodesOf[request]) {
    if (decodes.row[i] > row) break;
    const last = film.rowOfTick[decodes.end_tick[i] - 1 - film.header.ticks_before];
    parts.push(["decode", time(decodes.row[i]), endTime(last ?? film.length - 1)]);
  }
  return parts;
}
