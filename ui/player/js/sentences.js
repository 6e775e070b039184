// Why? Every decision of an iteration as a headline and sentences, with the numbers of its event.
// The words are templates of the language; this file only chooses which apply and fills them in.

const TRANSFERS = ["kv_sent", "transfer_start", "transfer_end"]; // between pools, before a decision
const EACH = 2; // of a kind, this many are told one by one; the rest in a line

// What one sentence about an iteration is about: the first of these that happened in it.
const TELLING = ["preempt", "swap_out", "reject", "swap_in", "resume", "admit", "refuse",
  "miss_ttft", "miss_tpot", "recompute", "prefill", "stalled", "decode"];

/**
 * The decisions of a local row in the order in which they happened: [{kind, tone, request, title,
 * body, event}], where title and body are lists of {text, bold} and `event` is an index into the
 * film's events (-1: none).
 */
export function decisionsOf(film, row, words) {
  const teller = new Teller(film, row, words);
  return teller.tell();
}

/** The one of these decisions that says most about the iteration; null where there is none. */
export function headlineOf(decisions) {
  const told = decisions.filter((decision) => !decision.fold);
  for (const kind of TELLING) {
    const found = told.find((decision) => decision.kind === kind);
    if (found) return found;
  }
  return told[0] ?? null;
}

class Teller {
  constructor(film, row, words) {
    this.film = film;
    this.row = row;
    this.words = words;
    this.state = film.length ? film.stateAt(row) : { free: film.header.kv_blocks };
    this.swappedIn = 0; // came back in this very decision, so the refusal still counted them
    this.found = [];
    this.told = new Map();
  }

  /** Of a film without any iteration: who was rejected, and why. */
  tellRejections() {
    this.film.events.row.forEach((_, i) => {
      const event = this.event(i);
      if (event.name === "reject") this.rejection(event);
    });
    return this.found;
  }

  tell() {
    const { film, row } = this;
    if (!film.length) return this.tellRejections();
    const events = film.eventsOf(row).map((i) => this.event(i));
    const of = (...names) => events.filter((event) => names.includes(event.name));
    const early = (event) => event.time_ns <= film.startNs[row];
    const late = (event) => !early(event); // after the last iteration of all
    this.idle();
    this.arrivals(of("arrive").filter(early));
    for (const name of TRANSFERS) for (const event of of(name)) this.transfer(event);
    for (const event of of("cancel").filter(early)) this.cancellation(event);
    for (const event of of("preempt", "swap_out")) this.eviction(event);
    for (const event of of("swap_in")) this.swapIn(event);
    this.swappedIn = of("swap_in").length;
    for (const event of of("reject")) this.rejection(event);
    for (const event of of("admit", "resume")) this.admission(event);
    const joined = new Set(of("admit", "resume").map((event) => event.request));
    this.prefills(joined);
    this.decodes();
    this.stalled();
    this.refusal();
    for (const i of film.missesIn(row)) this.miss(i);
    for (const event of of("first_token")) this.firstToken(event);
    for (const event of of("hand_over")) this.transfer(event);
    for (const event of of("finish")) this.finish(event);
    this.arrivals(of("arrive").filter(late));
    for (const event of of("cancel").filter(late)) this.cancellation(event);
    return this.found;
  }

  // -- tools ------------------------------------------------------------------------------------

  /** An event as an object: its columns, names instead of codes. */
  event(i) {
    const { events, header } = this.film;
    const event = { index: i };
    for (const [name, column] of Object.entries(events)) event[name] = column[i];
    event.name = header.events[events.event[i]];
    event.why = header.reasons[events.reason[i]];
    return event;
  }

  label(request) {
    return this.film.label(request);
  }

  /** Sentences from [key, values] pairs; a false entry is left out. */
  body(...sentences) {
    const spans = [];
    for (const sentence of sentences) {
      if (!sentence) continue;
      if (spans.length) spans.push({ text: this.words.text("list.space"), bold: false });
      spans.push(...this.words.spans(sentence[0], { ...this.common, ...sentence[1] }));
    }
    return spans;
  }

  get common() {
    return { free_now: this.state.free };
  }

  /** Add a decision unless many of its kind have been told; the rest is folded into a line. */
  add(kind, tone, request, titleValues, body, event = -1) {
    const told = this.told.get(kind) ?? [];
    told.push(request);
    this.told.set(kind, told);
    const foldKey = `${kind}.more`;
    if (told.length > EACH && this.words.has(foldKey)) {
      const rest = told.slice(EACH).map((r) => this.label(r));
      let fold = this.found.find((entry) => entry.fold === kind);
      if (!fold) {
        fold = { fold: kind, tone, request: -1, event: -1, body: [] };
        this.found.push(fold);
      }
      fold.title = this.words.spans(foldKey, { n: rest.length, names: this.words.names(rest) });
      return;
    }
    const title = this.words.spans(`${kind}.title`, { r: this.label(request), ...titleValues });
    this.found.push({ kind, tone, request, title, body, event });
  }

  // -- who comes and goes -------------------------------------------------------------------------

  idle() {
    const { film, row } = this;
    if (!row) return;
    const gap = film.startNs[row] - film.endNs[row - 1];
    if (gap <= 0) return;
    const quantum = film.header.quantum_ns ?? 0;
    this.add("idle", "free", -1, { gap },
      this.body([gap < quantum ? "idle.tick" : "idle.body", { gap, quantum }]));
  }

  eviction(event) {
    const { film } = this;
    const kind = event.name;
    const values = {
      r: this.label(event.request), other: this.label(event.other), blocks: event.blocks_needed,
      tokens: event.tokens, recompute: event.recompute_ns, swap: event.swap_ns,
      priority: film.requests.priority[event.request], n: event.blocks_needed,
    };
    const knows = (ns) => ns >= 0;
    let price = null;
    if (knows(event.recompute_ns) && knows(event.swap_ns)) price = "both";
    else if (knows(event.recompute_ns)) price = "recompute";
    else if (knows(event.swap_ns)) price = "swap";
    this.add(kind, kind === "preempt" ? "recompute" : "swap", event.request, values, this.body(
      this.words.has(`why.${event.why}`) && [`why.${event.why}`, values],
      [event.other >= 0 && event.other !== event.request ? `${kind}.blocks_for` : `${kind}.blocks`,
        values],
      [price ? `${kind}.price.${price}` : `${kind}.price.unknown`, values],
    ), event.index);
  }

  swapIn(event) {
    const values = { n: event.blocks_needed, blocks: event.blocks_needed, free: event.blocks_free,
      tokens: event.tokens };
    this.add("swap_in", "swap", event.request, values,
      this.body(["swap_in.body", values]), event.index);
  }

  transfer(event) {
    const values = { n: event.blocks_needed, blocks: event.blocks_needed, free: event.blocks_free,
      tokens: event.tokens };
    this.add(event.name, "swap", event.request, values,
      this.body([`${event.name}.body`, values]), event.index);
  }

  rejection(event) {
    const { requests, header } = this.film;
    const values = {
      blocks: event.blocks_needed, free: event.blocks_free, tokens: event.tokens,
      limit: event.tokens_free, prompt: requests.prompt_tokens[event.request],
      budget: header.budget ?? 0, n: event.blocks_needed, measured: event.tokens,
    };
    const key = `reject.${event.why}`;
    this.add("reject", "violated", event.request, values,
      this.body([this.words.has(key) ? key : "reject.other", values]), event.index);
  }

  cancellation(event) {
    const waited = event.time_ns - this.film.requests.arrival_ns[event.request];
    this.add("cancel", "violated", event.request, {},
      this.body(["cancel.body", { waited }]), event.index);
  }

  admission(event) {
    const { film } = this;
    const { header } = film;
    const stay = film.stayAt(event.request, this.row);
    const member = this.state.running.find((m) => m.request === event.request);
    const goal = stay < 0 ? event.tokens : film.stays.goal[stay];
    const left = goal - event.cached_tokens - event.tokens;
    const values = {
      blocks: event.blocks_needed, n: event.blocks_needed, free: event.blocks_free,
      tokens: event.tokens, budget: event.tokens_free, cached: event.cached_tokens, left,
      known: goal, prompt: film.requests.prompt_tokens[event.request],
    };
    const kind = event.name;
    const needs = header.holds === "life" ? "admit.reserves" : `${kind}.needs`;
    let chunk = null;
    if (left > 0 && event.tokens === event.tokens_free) chunk = "admit.budget_bound";
    else if (left > 0) chunk = "admit.chunk";
    else if (event.tokens_free >= 0) chunk = "admit.whole";
    const tone = member && member.phase === "recompute" ? "recompute" : "prefill";
    this.add(kind, tone, event.request, values, this.body(
      [needs, values],
      event.cached_tokens > 0 && ["admit.cached", values],
      chunk && [chunk, values],
    ), event.index);
  }

  // -- who computes what --------------------------------------------------------------------------

  prefills(joined) {
    const { film } = this;
    for (const member of this.state.running) {
      if (member.phase !== "prefill" && member.phase !== "recompute") continue;
      if (joined.has(member.request)) continue;
      const again = member.phase === "recompute" ? member.recompute : member.tokens;
      const values = {
        tokens: again, n: again, done: member.after, goal: member.goal,
        fresh: member.tokens - again,
      };
      const cause = member.phase === "recompute" ? this.lastEviction(member.request) : null;
      this.add(member.phase, member.phase, member.request, values, this.body(
        [member.after >= member.goal ? `${member.phase}.last` : `${member.phase}.part`, values],
        values.fresh > 0 && ["recompute.fresh", { ...values, n: values.fresh }],
        cause && ["recompute.cause", {
          iteration: cause.row + film.first, blocks: cause.blocks_needed, n: cause.blocks_needed,
        }],
        cause && cause.recompute_ns >= 0 && ["recompute.price", {
          tokens: cause.tokens, seconds: cause.recompute_ns,
        }],
      ), cause ? cause.index : -1);
    }
  }

  lastEviction(request) {
    const { events } = this.film;
    const preempt = this.film.eventCode.preempt;
    for (let i = this.film.eventsAt[this.row + 1] - 1; i >= 0; i--) {
      if (events.request[i] === request && events.event[i] === preempt) return this.event(i);
    }
    return null;
  }

  decodes() {
    const { film, words } = this;
    const list = this.state.running.filter((member) => member.phase === "decode");
    if (!list.length) return;
    const size = film.header.block_size;
    const fresh = list.filter((member) => member.before % size === 0).length;
    const names = words.names(list.map((member) => this.label(member.request)), 6);
    let blocks = "decode.new_blocks";
    if (film.header.holds === "life") blocks = "decode.reserved";
    else if (!fresh) blocks = "decode.no_new_blocks";
    this.found.push({
      kind: "decode", tone: "decode", request: -1, event: -1,
      title: words.spans("decode.title", { n: list.length, r: this.label(list[0].request) }),
      body: this.body(["decode.names", { names, n: list.length }],
        [blocks, { n: fresh, free: this.state.free }]),
    });
  }

  stalled() {
    const { film, words } = this;
    const list = this.state.running.filter((member) => member.phase === "stalled");
    if (!list.length) return;
    const names = words.names(list.map((member) => this.label(member.request)), 4);
    const prompts = film.rows.prefill_requests[this.row] > 0 && !film.rows.tick[this.row];
    this.found.push({
      kind: "stalled", tone: "waiting", event: -1,
      request: list.length === 1 ? list[0].request : -1,
      title: words.spans("stalled.title", { n: list.length, r: this.label(list[0].request) }),
      body: this.body([prompts ? "stalled.prompts" : "stalled.other", { names, n: list.length }]),
    });
  }

  // -- who must wait ------------------------------------------------------------------------------

  refusal() {
    const { film, state } = this;
    if (state.refusal < 0) return;
    const event = this.event(state.refusal);
    const { header } = film;
    const now = event.row === this.row;
    const ttft = film.ttftAt(event.request, this.row);
    const wait = state.waiting.find((i) => film.waits.request[i] === event.request);
    const values = {
      blocks: event.blocks_needed, n: event.blocks_needed, free: event.blocks_free,
      tokens: event.tokens, budget_left: event.tokens_free, budget: header.budget ?? 0,
      used: (header.budget ?? 0) - Math.max(event.tokens_free, 0), slots: header.slots,
      running: state.running.length, hosted: state.hosted.length + this.swappedIn,
      watermark: header.watermark,
      iteration: event.row + film.first,
      waited: wait === undefined ? NaN : state.startNs - film.waits.first_ns[wait],
      bound: film.slo.ttft,
    };
    let key = `refuse.${event.why}`;
    if (event.why === "batch_running") values.n = values.running;
    if (event.why === "no_budget" && event.tokens_free > 0) key = "refuse.no_budget_whole";
    if (!now && this.words.has(`${key}.since`)) key = `${key}.since`;
    const passes = now && event.why === "no_blocks" ? this.wouldFit(event) : -1;
    const lost = ttft.lost && !ttft.given;
    this.add("refuse", lost ? "violated" : "waiting", event.request, values, this.body(
      [key, values],
      event.why === "no_blocks" && header.watermark > 0 && event.blocks_needed <= event.blocks_free
        && ["refuse.watermark", values],
      passes >= 0 && ["refuse.order", { other: this.label(passes) }],
      values.waited > 0 && ["refuse.waited", values],
      lost && ["refuse.missed", values],
      !now && ["refuse.since", values],
    ), event.index);
  }

  /** A request further back whose blocks would be free: only the order keeps it out. */
  wouldFit(event) {
    const { film, state } = this;
    if (film.header.holds === "life") return -1;
    const place = state.waiting.findIndex((i) => film.waits.request[i] === event.request);
    for (const i of state.waiting.slice(place + 1)) {
      const need = film.blocksFor(film.waits.tokens[i]);
      if (need <= event.blocks_free - film.header.watermark) return film.waits.request[i];
    }
    return -1;
  }

  // -- promises and ends --------------------------------------------------------------------------

  miss(i) {
    const { misses, slo } = this.film;
    const which = misses.which[i] ? "tpot" : "ttft";
    const values = { bound: slo[which], clock: misses.time_ns[i] };
    this.add(`miss_${which}`, "violated", misses.request[i], values,
      this.body([`miss_${which}.body`, values]));
  }

  firstToken(event) {
    const { requests, slo } = this.film;
    const ttft = event.time_ns - requests.arrival_ns[event.request];
    const met = requests.ttft_lost_ns[event.request] < 0;
    const values = { ttft, bound: slo.ttft };
    this.add("first_token", met ? "decode" : "violated", event.request, values,
      this.body([met ? "first_token.met" : "first_token.missed", values]), event.index);
  }

  finish(event) {
    const { requests, slo } = this.film;
    const r = event.request;
    const output = requests.output_tokens[r];
    const ttft = requests.first_token_ns[r] - requests.arrival_ns[r];
    const tpot = (requests.last_token_ns[r] - requests.first_token_ns[r]) / (output - 1);
    const met = requests.ttft_lost_ns[r] < 0 && requests.tpot_lost_ns[r] < 0;
    const values = { output, n: event.blocks_needed, blocks: event.blocks_needed, ttft, tpot,
      ttft_bound: slo.ttft, tpot_bound: slo.tpot };
    this.add("finish", met ? "decode" : "violated", r, values, this.body(
      [output > 1 ? "finish.body" : "finish.body_one", values],
      ["finish.blocks", values],
      !met && ["finish.missed", values],
    ), event.index);
  }

  arrivals(events) {
    if (!events.length) return;
    const { requests } = this.film;
    const names = this.words.names(events.map((event) => this.label(event.request)), 5);
    const n = events.length;
    this.found.push({
      kind: "arrive", tone: "waiting", event: events[0].index,
      request: n === 1 ? events[0].request : -1,
      title: this.words.spans("arrive.title", { n, r: this.label(events[0].request) }),
      body: n === 1
        ? this.body(["arrive.one", { tokens: requests.prompt_tokens[events[0].request] }])
        : this.body(["arrive.many", { names }]),
    });
  }
}
