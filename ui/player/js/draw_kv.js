// KV memory: how much of it each request holds, by phase. Amounts, not addresses. Up to about 120
// blocks each is a cell with its request's name; up to some hundreds cells without names; above
// that only runs.

const LABELLED = 120;
const CELLS = 720;

/** Runs of blocks in the order of the batch: {request, phase, blocks, filled, cached}. */
export function kvRuns(film, state) {
  const runs = [];
  let shared = state.shared;
  const size = film.header.block_size;
  let neighbour = false; // two tints of decode alternate
  const members = [...state.running, ...state.kept];
  // Who came later shares the blocks of who was there before: take the doubles from the end.
  const doubles = new Map();
  for (let i = members.length - 1; i >= 0 && shared > 0; i--) {
    const own = Math.min(Math.floor(members[i].cached / size), members[i].blocks, shared);
    doubles.set(members[i], own);
    shared -= own;
  }
  for (const member of members) {
    let phase = member.phase;
    const plain = phase === "decode" || phase === "stalled";
    if (plain) {
      phase = phase === "decode" && neighbour ? "decode2" : phase;
      neighbour = !neighbour;
    }
    const own = doubles.get(member) ?? 0;
    runs.push({
      request: member.request,
      phase,
      blocks: member.blocks - own,
      filled: Math.min(member.after / size, member.blocks) - own,
      cached: Math.max(0, Math.floor(member.cached / size) - own),
      doubles: own,
    });
  }
  return runs;
}

export function drawKv(pen, box, film, state, words, stage) {
  const { colors } = pen;
  const total = film.header.kv_blocks;
  pen.text(words.text("kv.title"), box.x, box.y + 13, { size: 15, weight: 700 });
  pen.text(words.text("kv.count", { n: total }), box.x + box.w, box.y + 13, {
    size: 13, color: colors.muted, align: "right",
  });
  const map = { x: box.x, y: box.y + 30, w: box.w, h: box.h - 30 - 76 };
  const runs = kvRuns(film, state);
  if (total <= CELLS) drawCells(pen, map, film, runs, total, stage);
  else drawRuns(pen, map, film, runs, total, stage);

  const y = map.y + map.h + 24;
  let w = pen.text(words.count(state.used), box.x, y, { size: 21, weight: 700 });
  pen.text(words.text("kv.used"), box.x + w + 6, y, { size: 13, color: colors.muted });
  const freeWord = words.text("kv.free");
  w = pen.text(freeWord, box.x + box.w, y, { size: 13, color: colors.muted, align: "right" });
  pen.text(words.count(state.free), box.x + box.w - w - 6, y, {
    size: 21, weight: 700, align: "right",
  });
  const facts = [words.text("kv.unused", { n: state.unusedTokens })];
  if (state.shared) facts.unshift(words.text("kv.shared", { n: state.shared }));
  else if (film.header.watermark) {
    facts.unshift(words.text("kv.watermark", { n: film.header.watermark }));
  }
  facts.slice(0, 2).forEach((fact, i, list) => {
    pen.text(fact, box.x, y + 17 + i * 15 - (list.length > 1 ? 1 : 0), {
      size: 12, color: colors.muted, most: box.w,
    });
  });
  const followed = stage.followed >= 0 && runs.some((run) => run.request === stage.followed);
  const note = followed
    ? words.text("kv.note_followed", { request: film.label(stage.followed) })
    : words.text("kv.note");
  pen.text(note, box.x, box.y + box.h - 4, { size: 12, color: colors.muted, most: box.w });
}

/** How many columns make the cells largest. */
function gridOf(box, total) {
  let best = { columns: 1, size: 0 };
  for (let columns = 1; columns <= total; columns++) {
    const rows = Math.ceil(total / columns);
    const w = box.w / columns;
    const h = box.h / rows;
    const size = Math.min(w, h * 1.35);
    if (size > best.size) best = { columns, rows, size, w, h: Math.min(h, w) };
    else if (columns > 400) break;
  }
  return best;
}

function drawCells(pen, box, film, runs, total, stage) {
  const { colors } = pen;
  const grid = gridOf(box, total);
  const labelled = total <= LABELLED && grid.w >= 18;
  const gap = grid.w > 14 ? 2 : grid.w > 7 ? 1.2 : 0.7;
  const radius = labelled ? 3 : grid.w > 9 ? 1.5 : 0;
  const place = (i) => [box.x + (i % grid.columns) * grid.w,
    box.y + Math.floor(i / grid.columns) * grid.h];
  const w = grid.w - gap;
  const h = grid.h - gap;
  const chips = [];
  let at = 0;
  for (const run of runs) {
    const first = at;
    for (let b = 0; b < run.blocks && at < total; b++, at++) {
      const [x, y] = place(at);
      const share = Math.max(0, Math.min(1, run.filled - b));
      if (share < 1) {
        if (run.filled - b <= 0) pen.area("reserved", x, y, w, h, radius);
        else pen.box(x, y, w, h, { radius, fill: colors.track });
      }
      const phase = b < run.cached ? "cached" : run.phase;
      if (share > 0) pen.area(phase, x, y, w * share, h, radius);
      if (run.request === stage.followed) {
        pen.box(x, y, w, h, { radius, stroke: colors.ink, width: labelled ? 1.6 : 1 });
      }
    }
    if (at > first) {
      chips.push([run.request, first]);
      hitCells(stage, box, grid, first, at, run.request);
    }
  }
  for (; at < total; at++) {
    const [x, y] = place(at);
    const kept = at >= total - film.header.watermark;
    pen.box(x + 0.5, y + 0.5, w - 1, h - 1, {
      radius, fill: kept ? colors.track : colors.ground, stroke: colors.free,
    });
  }
  for (const [request, first] of chips) {
    const [x, y] = place(first);
    pen.rect(x - gap / 2 - 0.7, y - 1, labelled ? 1.8 : 1.2, h + 2, colors.ink);
    if (labelled) {
      const text = pen.fit(film.label(request).replace(/^r(?=\d)/, ""), 12, 600, grid.w * 1.9);
      pen.chip(text, x + 2, y + h / 2 + 3, 12);
    }
  }
}

function hitCells(stage, box, grid, first, end, request) {
  for (let row = Math.floor(first / grid.columns); row * grid.columns < end; row++) {
    const from = Math.max(first, row * grid.columns) - row * grid.columns;
    const to = Math.min(end, (row + 1) * grid.columns) - row * grid.columns;
    stage.hit({ x: box.x + from * grid.w, y: box.y + row * grid.h, w: (to - from) * grid.w,
      h: grid.h }, { request });
  }
}

/** Many blocks: lines of memory, filled run by run. */
function drawRuns(pen, box, film, runs, total, stage) {
  const { colors } = pen;
  const lines = Math.max(6, Math.round(box.h / 14));
  const perLine = Math.ceil(total / lines);
  const h = box.h / lines;
  const unit = box.w / perLine;
  const band = (first, end, paint) => {
    for (let line = Math.floor(first / perLine); line * perLine < end && line < lines; line++) {
      const from = Math.max(first - line * perLine, 0);
      const to = Math.min(end - line * perLine, perLine);
      if (to > from) paint(box.x + from * unit, box.y + line * h, (to - from) * unit, h - 2.5);
    }
  };
  band(0, total, (x, y, w, height) => pen.rect(x, y, w, height, colors.track));
  let at = 0;
  for (const run of runs) {
    const filled = Math.max(0, Math.min(run.filled, run.blocks));
    const cached = Math.min(run.cached, filled);
    const fill = (phase) => (x, y, w, height) => pen.area(phase, x, y, w, height);
    band(at, at + cached, fill("cached"));
    band(at + cached, at + filled, fill(run.phase));
    band(at + Math.ceil(filled), at + run.blocks, fill("reserved"));
    if (run.request === stage.followed) {
      band(at, at + run.blocks, (x, y, w, height) =>
        pen.box(x, y, Math.max(w, 2), height, { stroke: colors.ink, width: 1.6 }));
    }
    band(at, at + run.blocks, (x, y, w, height) =>
      stage.hit({ x, y, w, h: height }, { request: run.request }));
    at += run.blocks;
    if (run.blocks * unit > 4) {
      band(at - 1, at, (x, y, w, height) => pen.rect(x + w - 0.6, y, 1, height, colors.ground));
    }
  }
  if (film.header.watermark) {
    band(total - film.header.watermark, total, (x, y, w, height) =>
      pen.area("reserved", x, y, w, height));
  }
}
