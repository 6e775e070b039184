// A film in memory: its columns, and the state of any iteration.
//
// A state is what covers the iteration: stays in the batch, waits in the queue, runs of chunks and
// of decodes. Every KEY_ROWS rows a key frame lists who is there, so that a jump costs the same
// anywhere; from the nearest key frame on, only what came since is looked at.

import { unpackFilm } from "./decode.js";

export const KEY_ROWS = 128;
export const WAITED = 0;
export const HOSTED = 1; // KV in host memory
export const RESUMED = 1;
export const SWAPPED_IN = 2;
export const KEPT = 3; // finished, but its row runs on with a static batch
export const NS = 1e9;

export class Film {
  constructor(bytes) {
    const { header, tables } = unpackFilm(bytes);
    this.bytes = bytes;
    this.header = header;
    for (const [name, table] of Object.entries(tables)) {
      this[name === "marks" ? "outside" : name] = table; // rows, waits, stays, chunks, events, ...
    }
    this.first = header.first;
    this.end = header.end;
    this.length = this.end - this.first;
    this.total = header.rows;
    this.nRequests = this.requests.row.length;
    this.eventCode = Object.fromEntries(header.events.map((name, code) => [name, code]));
    this.reasonCode = Object.fromEntries(header.reasons.map((name, code) => [name, code]));
    this.slo = {
      ttft: header.slo.ttft_s * NS,
      tpot: header.slo.tpot_s * NS,
    };
    this.toLocalRows();
    this.buildClock();
    this.buildLists();
    this.keyWaits = keyFrames(this.waits, this.length);
    this.keyStays = keyFrames(this.stays, this.length);
    this.buildSeries();
    this.cache = new Map();
  }

  // -- opening ----------------------------------------------------------------------------------

  /** Rows count from the first of the window; what began before has a negative row. */
  toLocalRows() {
    if (!this.first) return;
    const shift = (column) => Float64Array.from(column, (value) => value - this.first);
    for (const table of [this.waits, this.stays]) {
      table.first = shift(table.first);
      table.end = shift(table.end);
    }
    for (const table of [this.chunks, this.decodes, this.events, this.misses]) {
      table.row = shift(table.row);
    }
  }

  buildClock() {
    const n = this.length;
    this.endNs = this.rows.end_ns;
    this.startNs = new Float64Array(n);
    if (n) this.startNs[0] = this.header.window_start_ns;
    for (let i = 1; i < n; i++) this.startNs[i] = this.endNs[i - 1];
    this.gaps.row.forEach((row, i) => (this.startNs[row] = this.gaps.start_ns[i]));
    // ticks: iterations in which the decodes advanced
    this.tickOf = new Float64Array(n + 1);
    this.tickOf[0] = this.header.ticks_before;
    const rowOfTick = [];
    for (let i = 0; i < n; i++) {
      this.tickOf[i + 1] = this.tickOf[i] + this.rows.tick[i];
      if (this.rows.tick[i]) rowOfTick.push(i);
    }
    this.rowOfTick = rowOfTick;
  }

  buildLists() {
    const n = this.nRequests;
    this.chunksOf = groupBy(this.chunks.request, n);
    this.decodesOf = groupBy(this.decodes.request, n);
    this.staysOf = groupBy(this.stays.request, n);
    this.waitsOf = groupBy(this.waits.request, n);
    this.missesOf = groupBy(this.misses.request, n);
    // events are in the order in which they happened, so rows never fall
    this.eventsAt = rowStarts(this.events.row, this.length);
    this.missesAt = rowStarts(this.misses.row, this.length);
    this.labels = Array.from({ length: n }, (_, i) => {
      const name = this.header.names ? this.header.names[i] : String(this.requests.row[i]);
      return /^\d+$/.test(name) ? `r${name}` : name;
    });
    const refuse = this.eventCode.refuse;
    const joins = new Set([this.eventCode.admit, this.eventCode.resume]);
    this.refusalAt = new Int32Array(this.length).fill(-1); // the refusal that stands at a row
    let standing = -1;
    let event = 0;
    for (let row = 0; row < this.length; row++) {
      for (; event < this.events.row.length && this.events.row[event] <= row; event++) {
        const code = this.events.event[event];
        if (code === refuse) standing = event;
        else if (joins.has(code)) standing = -1;
        else if (standing >= 0 && this.leavesQueue(code, event, standing)) standing = -1;
      }
      this.refusalAt[row] = standing;
    }
  }

  leavesQueue(code, event, refusal) {
    const gone = code === this.eventCode.cancel || code === this.eventCode.reject;
    return gone && this.events.request[event] === this.events.request[refusal];
  }

  /** Numbers over rows that the strips draw: requests and blocks by phase, who waits too long. */
  buildSeries() {
    const n = this.length;
    const recompute = new Float64Array(n);
    const kvPrefill = new Float64Array(n);
    const kvRecompute = new Float64Array(n);
    const emitted = Float64Array.from(this.rows.decode_requests);
    const { row, iterations, request, tokens, first_token: firstToken, emits } = this.chunks;
    for (let i = 0; i < row.length; i++) {
      const stay = this.stayAt(request[i], row[i]);
      const before = stay < 0 ? 0 : this.stays.known_before[stay];
      const last = Math.min(row[i] + iterations[i], n);
      for (let at = Math.max(row[i], 0); at < last; at++) {
        const position = firstToken[i] + (at - row[i]) * tokens[i];
        const blocks = stay < 0 ? 0 : this.blocksHeld(stay, position + tokens[i]);
        if (position < before) {
          recompute[at] += 1;
          kvRecompute[at] += blocks;
        } else {
          kvPrefill[at] += blocks;
        }
      }
      if (emits[i] && last - 1 >= 0 && row[i] + iterations[i] <= n) emitted[last - 1] += 1;
    }
    const late = new Float64Array(n + 1);
    for (let i = 0; i < this.waits.request.length; i++) {
      const lost = this.requests.ttft_lost_ns[this.waits.request[i]];
      if (this.waits.kind[i] !== WAITED || lost < 0) continue;
      if (this.hasFirstToken(this.waits.request[i], this.waits.first_ns[i])) continue;
      const from = Math.max(this.waits.first[i], this.rowAt(lost), 0);
      if (from < this.waits.end[i] && from < n) {
        late[from] += 1;
        late[Math.min(this.waits.end[i], n)] -= 1;
      }
    }
    for (let i = 1; i <= n; i++) late[i] += late[i - 1];
    // output tokens up to the start of each iteration
    this.emittedBefore = new Float64Array(n + 1);
    this.emittedBefore[0] = this.header.emitted_before;
    for (let i = 0; i < n; i++) this.emittedBefore[i + 1] = this.emittedBefore[i] + emitted[i];
    this.series = { recompute, kvPrefill, kvRecompute, late };
  }

  // -- looking up -------------------------------------------------------------------------------

  /** The local row that runs at a time (the next one in a pause), within the window. */
  rowAt(ns) {
    const row = upperBound(this.endNs, ns);
    return Math.min(row, Math.max(this.length - 1, 0));
  }

  /** True if KV moves to host memory anywhere in this window. */
  swaps() {
    this.anySwap ??= this.rows.swapped.some((n) => n > 0);
    return this.anySwap;
  }

  label(request) {
    return request < 0 ? "" : this.labels[request];
  }

  hasFirstToken(request, ns) {
    const first = this.requests.first_token_ns[request];
    return first >= 0 && first <= ns;
  }

  /** The stay of a request that covers a row, -1 where there is none. */
  stayAt(request, row) {
    for (const stay of this.staysOf[request]) {
      if (this.stays.first[stay] <= row && row < this.stays.end[stay]) return stay;
    }
    return -1;
  }

  blocksFor(tokens) {
    return Math.ceil(tokens / this.header.block_size);
  }

  /** KV blocks of a request in the batch when `after` of its tokens are computed. */
  blocksHeld(stay, after) {
    if (this.header.holds === "life") return this.stays.blocks[stay];
    const goal = this.stays.goal[stay];
    const whole = this.header.holds === "prompt" && after < goal;
    return this.blocksFor(whole ? goal : after);
  }

  /** When the newest output token before an iteration came out; NaN where that is unknown. */
  lastTokenNs(request, row) {
    const tick = this.tickOf[row];
    let found = -1;
    for (const i of this.decodesOf[request]) {
      if (this.decodes.first_tick[i] >= tick) break;
      const last = Math.min(this.decodes.end_tick[i], tick) - 1 - this.header.ticks_before;
      if (last >= 0) found = Math.max(found, this.rowOfTick[last]);
    }
    for (const i of this.chunksOf[request]) {
      const end = this.chunks.row[i] + this.chunks.iterations[i];
      if (end > row) break;
      if (this.chunks.emits[i]) found = Math.max(found, end - 1);
    }
    return found >= 0 ? this.endNs[found] : NaN;
  }

  /** Events of a local row as indices. */
  eventsOf(row) {
    return range(this.eventsAt[row], this.eventsAt[row + 1]);
  }

  missesIn(row) {
    return range(this.missesAt[row], this.missesAt[row + 1]);
  }

  // -- the state of an iteration ----------------------------------------------------------------

  /** Everything the stage shows of a local row; the last few states are kept. */
  stateAt(row) {
    if (!this.cache.has(row)) {
      if (this.cache.size > 16) this.cache.delete(this.cache.keys().next().value);
      this.cache.set(row, this.makeState(row));
    }
    return this.cache.get(row);
  }

  makeState(row) {
    const waits = covering(this.waits, this.keyWaits, row);
    const waiting = waits.filter((i) => this.waits.kind[i] === WAITED);
    waiting.sort((a, b) => this.waits.key[a] - this.waits.key[b]);
    const hosted = waits.filter((i) => this.waits.kind[i] === HOSTED);
    const members = covering(this.stays, this.keyStays, row).map((stay) => this.member(stay, row));
    let held = 0;
    for (const member of members) held += member.blocks;
    const used = this.rows.blocks_used[row];
    const start = this.startNs[row];
    const end = this.endNs[row];
    const first = this.header.start_ns;
    return {
      row,
      iteration: row + this.first,
      startNs: start,
      endNs: end,
      running: members.filter((member) => member.phase !== "kept"),
      kept: members.filter((member) => member.phase === "kept"),
      waiting,
      hosted,
      used,
      free: this.header.kv_blocks - used,
      shared: Math.max(0, held - used), // counted for several requests, stored once
      unusedTokens: this.unusedTokens(members),
      refusal: this.refusalAt[row],
      time: this.timeParts(row),
      throughput: start > first ? (this.emittedBefore[row] * NS) / (start - first) : NaN,
    };
  }

  /** One request of the batch: what it does now, and how far it has come. */
  member(stay, row) {
    const s = this.stays;
    const request = s.request[stay];
    const prompt = this.requests.prompt_tokens[request];
    const goal = s.goal[stay];
    let phase = "stalled"; // in the batch, but no token for it in this iteration
    let before = s.start[stay];
    let tokens = 0;
    if (s.kind[stay] === KEPT) {
      phase = "kept";
      before = prompt + this.requests.output_tokens[request] - 1;
      tokens = this.rows.tick[row];
    } else {
      const chunk = lastUpTo(this.chunksOf[request], this.chunks.row, row);
      const inStay = chunk >= 0 && this.chunks.row[chunk] >= s.first[stay];
      const step = chunk >= 0 ? row - this.chunks.row[chunk] : 0;
      const tick = this.tickOf[row];
      const run = lastUpTo(this.decodesOf[request], this.decodes.row, row);
      if (inStay) {
        const steps = Math.min(step, this.chunks.iterations[chunk]);
        before = this.chunks.first_token[chunk] + steps * this.chunks.tokens[chunk];
      }
      if (inStay && step < this.chunks.iterations[chunk]) {
        phase = before < s.known_before[stay] ? "recompute" : "prefill";
        tokens = this.chunks.tokens[chunk];
      } else if (run >= 0 && this.decodes.row[run] >= s.first[stay]) {
        const until = Math.min(tick, this.decodes.end_tick[run]);
        before = this.decodes.context[run] + until - this.decodes.first_tick[run];
        if (this.rows.tick[row] && tick < this.decodes.end_tick[run]) {
          phase = "decode";
          tokens = 1;
        }
      }
    }
    const again = Math.max(0, Math.min(tokens, s.known_before[stay] - before));
    const emitted = before >= goal ? before + 1 - prompt : goal - prompt;
    return {
      stay,
      request,
      phase,
      tokens,
      recompute: phase === "recompute" ? again : 0,
      before,
      after: phase === "kept" ? before : before + tokens,
      goal,
      prompt,
      cached: s.kind[stay] === SWAPPED_IN ? 0 : s.start[stay],
      emitted, // output tokens before this iteration
      decoding: before >= goal,
      blocks: this.blocksHeld(stay, phase === "kept" ? before : before + tokens),
    };
  }

  /** Token places inside held blocks that hold no token, reserved ones included. */
  unusedTokens(members) {
    let unused = 0;
    for (const member of members) unused += member.blocks * this.header.block_size - member.after;
    return Math.max(0, unused);
  }

  /** What the duration is made of: compute, memory, and what hides behind neither (seconds). */
  timeParts(row) {
    const total = (this.endNs[row] - this.startNs[row]) / NS;
    const cost = this.header.cost;
    if (!cost) return { total };
    const r = this.rows;
    const tokens =
      r.decode_requests[row] + r.prefill_tokens[row] + r.recompute_tokens[row] +
      r.padding_tokens[row];
    const table = cost.weights_read_table_s;
    const weights = table ? table[Math.min(tokens, table.length - 1)] : cost.weights_read_s;
    return {
      total,
      tokens,
      compute: cost.compute_token_s * tokens + cost.compute_pair_s * r.attention_pairs[row],
      memory: weights + cost.kv_token_read_s * r.kv_tokens_read[row],
      fixed: cost.fixed_s,
      perToken: cost.token_s * tokens,
      swap: cost.swapped_block_s * r.swapped_blocks[row],
    };
  }

  /** TTFT of a request as seen when an iteration starts: {ns, given, lost} (all in ns). */
  ttftAt(request, row) {
    const r = this.requests;
    const start = this.startNs[row];
    const given = this.hasFirstToken(request, start);
    const ns = (given ? r.first_token_ns[request] : start) - r.arrival_ns[request];
    const lost = r.ttft_lost_ns[request];
    return { ns, given, lost: lost >= 0 && lost < this.endNs[row] };
  }

  /** TPOT so far: {ns, lost, above}; ns is NaN before the second token. */
  tpotAt(request, row, emitted) {
    const r = this.requests;
    const lostNs = r.tpot_lost_ns[request];
    const lost = lostNs >= 0 && lostNs < this.endNs[row];
    const last = this.lastTokenNs(request, row);
    const ns = emitted > 1 ? (last - r.first_token_ns[request]) / (emitted - 1) : NaN;
    return { ns, lost, above: ns > this.slo.tpot };
  }

  // -- moments to jump to -----------------------------------------------------------------------

  /** Rows (of the whole run) with a moment of a kind; "any" takes them all. */
  marks(kind) {
    this.markRows ??= this.collectMarks();
    return this.markRows[kind];
  }

  collectMarks() {
    const rows = Object.fromEntries(this.header.marks.map((kind) => [kind, new Set()]));
    const kindOf = {
      arrive: "arrive", refuse: "refuse", preempt: "preempt", swap_out: "swap", swap_in: "swap",
      reject: "reject", cancel: "reject",
    };
    this.events.row.forEach((row, i) => {
      const kind = kindOf[this.header.events[this.events.event[i]]];
      if (kind) rows[kind].add(row + this.first);
    });
    this.misses.row.forEach((row) => rows.miss.add(row + this.first));
    if (this.outside) {
      const outside = this.outside;
      outside.row.forEach((row, i) => {
        if (row < this.first || row >= this.end) rows[this.header.marks[outside.kind[i]]].add(row);
      });
    }
    const sorted = {};
    const all = new Set();
    for (const [kind, set] of Object.entries(rows)) {
      sorted[kind] = Float64Array.from(set).sort();
      if (kind !== "arrive" && kind !== "refuse") for (const row of set) all.add(row);
    }
    sorted.any = Float64Array.from(all).sort();
    return sorted;
  }

  /** The next row with a moment of a kind, forward (+1) or backward (-1); -1 where none is. */
  nextMark(kind, row, direction) {
    const rows = this.marks(kind);
    const at = direction > 0 ? upperBound(rows, row) : lowerBound(rows, row) - 1;
    return at >= 0 && at < rows.length ? rows[at] : -1;
  }
}

// -- small tools --------------------------------------------------------------------------------

export function lowerBound(values, target) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < target) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function upperBound(values, target) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= target) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function range(first, end) {
  return Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i);
}

/** Lists of indices by request, in order. */
function groupBy(requests, n) {
  const lists = Array.from({ length: n }, () => []);
  for (let i = 0; i < requests.length; i++) lists[requests[i]].push(i);
  return lists;
}

/** starts[row] .. starts[row + 1] are the entries of a row (entries sorted by row). */
function rowStarts(rows, n) {
  const starts = new Int32Array(n + 1);
  let at = 0;
  for (let row = 0; row <= n; row++) {
    while (at < rows.length && rows[at] < row) at++;
    starts[row] = at;
  }
  starts[n] = rows.length;
  return starts;
}

/** Who is there at every KEY_ROWS-th row; entries are sorted by their first row. */
function keyFrames(table, n) {
  const frames = [];
  let active = [];
  let next = 0;
  for (let row = 0; row < n; row += KEY_ROWS) {
    active = active.filter((i) => table.end[i] > row);
    for (; next < table.first.length && table.first[next] <= row; next++) {
      if (table.end[next] > row) active.push(next);
    }
    frames.push({ active: active.slice(), next });
  }
  return frames;
}

/** Entries that cover a row, in the order in which they began. */
function covering(table, frames, row) {
  const frame = frames[Math.floor(row / KEY_ROWS)];
  const found = frame.active.filter((i) => table.end[i] > row);
  for (let i = frame.next; i < table.first.length && table.first[i] <= row; i++) {
    if (table.end[i] > row) found.push(i);
  }
  return found;
}

/** The last entry of a request's list whose row is not after `row`, -1 where there is none. */
function lastUpTo(list, rows, row) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[list[middle]] <= row) low = middle + 1;
    else high = middle;
  }
  return low ? list[low - 1] : -1;
}
