// The running batch: one row a request with its phase, tokens, context and promises. About nine
// rows are readable, so exceptions come first and the rest is folded into one line.

import { ROW } from "./layout.js";

const HEAD = 39;
const FOOT = 21;

export function drawBatch(pen, box, film, state, words, stage) {
  const { colors } = pen;
  const all = state.running;
  pen.text(words.text("batch.title"), box.x, box.y + 13, { size: 15, weight: 700 });
  pen.text(words.text("batch.count", { n: all.length, slots: film.header.slots }),
    box.x + box.w, box.y + 13, { size: 13, color: colors.muted, align: "right" });
  const columns = columnsOf(box);
  const title = (key, x, align) =>
    pen.text(words.text(key), x, box.y + 33, { size: 12, color: colors.muted, align });
  title("batch.phase", columns.phase);
  title("batch.context", columns.context);
  title("batch.ttft", columns.ttft);
  title("batch.tpot", columns.tpot);

  const room = box.h - HEAD - FOOT;
  const most = Math.floor(room / ROW.least);
  const fold = all.length + (state.kept.length ? 1 : 0) > most;
  columns.tokensWide = scaleOf(film, all);
  const rows = fold ? orderedByInterest(film, state, stage).slice(0, most - 1) : all;
  const lines = rows.length + (fold || state.kept.length ? 1 : 0);
  const pitch = Math.max(ROW.least, Math.min(ROW.most, room / Math.max(lines, 1)));
  const y = (i) => box.y + HEAD + i * pitch;
  rows.forEach((member, i) => {
    const line = { x: box.x, y: y(i), w: box.w, h: pitch };
    drawRow(pen, line, columns, film, state, words, stage, member);
  });
  if (fold || state.kept.length) {
    const rest = all.filter((member) => !rows.includes(member));
    drawRest(pen, { x: box.x, y: y(rows.length), w: box.w, h: pitch }, columns, state, words, rest);
  }
  if (!all.length) {
    pen.text(words.text("batch.nobody"), box.x, box.y + HEAD + 20, { color: colors.muted });
  }
  pen.text(words.text("batch.note"), box.x, box.y + box.h - 4, {
    size: 12, color: colors.muted, most: box.w,
  });
}

/** Left ends of the columns; what is over goes to the context bar. */
function columnsOf(box) {
  const x = box.x;
  const spare = Math.max(0, box.w - 344);
  const id = 34 + Math.min(spare * 0.12, 14);
  const tokens = x + id + 104 + spare * 0.18;
  const context = tokens + 12;
  const bar = 44 + spare * 0.34;
  const number = context + bar + 40;
  const ttft = number + 12;
  const bullet = 46 + spare * 0.14;
  return { phase: x + id, name: x + id + 20, tokens, context, bar, number, ttft,
    tpot: ttft + bullet + 14, bullet: Math.min(bullet, x + box.w - ttft - bullet - 14) };
}

/** Tokens across the context bar: the longest of the batch in the end, in steps that hold still. */
function scaleOf(film, members) {
  const { prompt_tokens: prompt, output_tokens: output } = film.requests;
  let longest = 100;
  for (const { request } of members) {
    longest = Math.max(longest, prompt[request] + output[request]);
  }
  const step = 2 ** Math.floor(Math.log2(longest) - 1);
  return Math.ceil(longest / step) * step;
}

/** Followed first, then whoever does something else than decode, then the late, then the rest. */
function orderedByInterest(film, state, stage) {
  const rank = (member) => {
    if (member.request === stage.followed) return 0;
    if (member.phase === "recompute") return 1;
    if (member.phase === "prefill") return 2;
    if (film.stays.first[member.stay] === state.row) return 3; // it has just come in
    const { ttft_lost_ns: ttft, tpot_lost_ns: tpot } = film.requests;
    const lost = (ns) => ns >= 0 && ns < state.endNs;
    return lost(ttft[member.request]) || lost(tpot[member.request]) ? 4 : 5;
  };
  return state.running
    .map((member, i) => ({ member, i, rank: rank(member) }))
    .sort((a, b) => a.rank - b.rank || a.i - b.i)
    .map((entry) => entry.member);
}

function drawRow(pen, box, columns, film, state, words, stage, member) {
  const { colors } = pen;
  const { request } = member;
  const tight = box.h < 31;
  const baseline = box.y + box.h / 2 + 5;
  if (request === stage.followed) {
    pen.box(box.x - 8, box.y, box.w + 12, box.h, { radius: 6, fill: colors.track });
  } else {
    pen.line(box.x, box.y, box.x + box.w, box.y, colors.track);
  }
  stage.hit(box, { request });
  pen.text(film.label(request), box.x, baseline, {
    size: 14, weight: 700, most: columns.phase - box.x - 4,
  });
  pen.area(member.phase, columns.phase, baseline - 12, 14, 14, 2);
  pen.text(words.text(`phase.${member.phase}`), columns.name, baseline, {
    size: 14, most: columns.tokens - columns.name - 26,
  });
  pen.text(words.count(member.tokens), columns.tokens, baseline, {
    size: 15, weight: 700, align: "right",
  });
  drawContext(pen, columns, baseline, film, member);
  pen.text(words.count(member.after), columns.number, baseline, { size: 13, align: "right" });

  const bulletY = box.y + box.h / 2 + (tight ? 8 : 9);
  const numberY = box.y + box.h / 2 + (tight ? 3.5 : 3);
  const ttft = film.ttftAt(request, state.row);
  const late = ttft.lost;
  const waited = milliseconds(words, ttft.ns) + (ttft.given ? "" : "+");
  const wide = pen.text(waited, columns.ttft, numberY, {
    size: 13, weight: late ? 700 : 400, color: late ? colors.violated : colors.ink,
  });
  if (late) {
    // At the end of the bar, or right behind the number where that is longer.
    const mark = Math.max(columns.bullet - 6, wide + 7);
    pen.violation(columns.ttft + mark, numberY - 4, true, 4.5);
  }
  pen.bullet(columns.ttft, bulletY, columns.bullet, ttft.ns / film.slo.ttft, late);

  const tpot = film.tpotAt(request, state.row, member.emitted);
  if (!Number.isFinite(tpot.ns)) {
    pen.text("–", columns.tpot, baseline, { size: 13, color: colors.muted });
    return;
  }
  const bad = tpot.lost || tpot.above;
  pen.text(milliseconds(words, tpot.ns), columns.tpot, numberY, {
    size: 13, weight: bad ? 700 : 400, color: bad ? colors.violated : colors.ink,
  });
  if (bad) pen.violation(columns.tpot + columns.bullet - 6, numberY - 4, tpot.lost, 4.5);
  pen.bullet(columns.tpot, bulletY, columns.bullet, tpot.ns / film.slo.tpot, bad);
}

/** Milliseconds as short as the column: 6.0, 24.2, 470, 1,480; in seconds when long: 10.2s. */
export function milliseconds(words, ns) {
  const ms = ns / 1e6;
  if (!Number.isFinite(ms)) return "–";
  if (ms >= 9950) return `${words.significant(ms / 1e3, 3)}s`;
  return ms < 99.95 ? words.fixed(ms, 1) : words.count(ms);
}

/** Grey what was computed before, color what is computed now, a tick where the prompt ends. */
function drawContext(pen, columns, baseline, film, member) {
  const { colors } = pen;
  const y = baseline - 9;
  const scale = columns.bar / columns.tokensWide;
  pen.rect(columns.context, y, columns.bar, 9, colors.track);
  const cached = Math.min(member.cached, member.before) * scale;
  pen.rect(columns.context + cached, y, member.before * scale - cached, 9, colors.muted);
  if (cached > 0) pen.area("cached", columns.context, y, cached, 9);
  let x = columns.context + member.before * scale;
  const again = member.recompute * scale;
  if (again) pen.area("recompute", x, y, Math.max(again, 2), 9);
  x += again;
  const fresh = (member.tokens - member.recompute) * scale;
  if (member.tokens > member.recompute) {
    pen.area(member.phase === "decode" ? "decode" : "prefill", x, y - (fresh < 3 ? 1.5 : 0),
      Math.max(fresh, 2.5), fresh < 3 ? 12 : 9);
  }
  const prompt = columns.context + member.prompt * scale;
  pen.rect(prompt - 0.6, y - 2.5, 1.4, 14, colors.ink);
}

/** One line for those who are not drawn: how many, doing what. */
function drawRest(pen, box, columns, state, words, rest) {
  const { colors } = pen;
  pen.line(box.x, box.y, box.x + box.w, box.y, colors.track);
  const counts = new Map();
  for (const member of rest) counts.set(member.phase, (counts.get(member.phase) ?? 0) + 1);
  const parts = [];
  if (counts.size === 1 && counts.has("decode")) {
    parts.push(words.text("batch.rest_decode", { n: rest.length }));
  } else if (rest.length) {
    const list = [...counts].map(([phase, n]) =>
      `${words.count(n)} ${words.text(`phase.${phase}`)}`);
    const what = list.join(words.text("list.comma"));
    parts.push(words.text("batch.rest", { n: rest.length, what }));
  }
  if (state.kept.length) parts.push(words.text("batch.kept", { n: state.kept.length }));
  const baseline = box.y + box.h / 2 + 5;
  [0, 1, 2].forEach((i) => {
    const phase = [...counts.keys()][0] ?? "kept";
    pen.area(phase, columns.phase + i * 3, baseline - 12 + i * 1.5, 12, 12, 2);
    pen.box(columns.phase + i * 3, baseline - 12 + i * 1.5, 12, 12, {
      radius: 2, stroke: colors.ground,
    });
  });
  pen.text(parts.join(words.text("list.semicolon")), columns.name + 8, baseline, {
    size: 13, most: box.x + box.w - columns.name - 8,
  });
}
