// The derivation viewer: a formula, its steps, and what each of its symbols means.
// Called by Streamlit at every rerun with the same parent element: place and selection stay.

const viewers = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  let viewer = viewers.get(parentElement);
  if (!viewer) {
    viewer = new Viewer(parentElement.querySelector(".deriv"));
    viewers.set(parentElement, viewer);
  }
  viewer.report = (goal) => setStateValue("goal", goal);
  viewer.take(data);
}

/** Markup of formulas comes from the program's own tables; all other words go in as text. */
function fill(element, markup) {
  if (element.dataset.shown === markup) return;
  element.dataset.shown = markup;
  element.innerHTML = markup;
}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function framed(markup, className = "") {
  const element = make("div", `formula ${className}`);
  fill(element, markup);
  return element;
}

class Viewer {
  constructor(root) {
    this.root = root;
    this.place = 0;
    this.all = false;
    this.numbers = false;
    this.tab = "steps";
    this.held = null;
    this.id = null;
    this.listen();
    new ResizeObserver(() => this.fit()).observe(root);
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  button(name) {
    return this.root.querySelector(`[data-do="${name}"]`);
  }

  take(data) {
    if (data.id !== this.id) {
      this.place = 0;
      this.all = false;
      this.held = null;
      this.typed = false;
      this.numbers = data.numbers;
      this.id = data.id;
    }
    this.data = data;
    this.root.dataset.theme = data.theme;
    this.root.lang = data.language;
    this.draw();
  }

  // -- what happens ------------------------------------------------------------------------------

  listen() {
    const { root } = this;
    root.addEventListener("click", (event) => this.click(event));
    const symbolAt = (event) => event.target.closest?.("[data-symbol]")?.dataset.symbol;
    root.addEventListener("pointerover", (event) => this.say(symbolAt(event) ?? this.held));
    root.addEventListener("pointerleave", () => this.say(this.held));
    root.addEventListener("focusin", (event) => {
      const symbol = symbolAt(event);
      if (symbol) this.say(symbol);
    });
    root.addEventListener("keydown", (event) => this.key(event));
    this.part("goal").addEventListener("change", (event) => {
      const goal = event.target.valueAsNumber;
      if (Number.isFinite(goal)) {
        this.typed = true;
        this.report({ formula: this.id, goal });
      }
    });
  }

  click(event) {
    const symbol = event.target.closest("[data-symbol]");
    if (symbol) {
      this.held = this.held === symbol.dataset.symbol ? null : symbol.dataset.symbol;
      this.say(symbol.dataset.symbol);
      return;
    }
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.tab) {
      this.tab = button.dataset.tab;
      this.draw();
    }
    const steps = this.data.steps.length;
    const act = {
      back: () => (this.place = Math.max(this.place - 1, 0)),
      next: () => (this.place = Math.min(this.place + 1, steps - 1)),
      all: () => (this.all = !this.all),
      numbers: () => (this.numbers = !this.numbers),
      copy: () => this.copy(),
    }[button.dataset.do];
    if (act) {
      act();
      this.draw();
    }
  }

  key(event) {
    const symbol = event.target.closest?.("[data-symbol]");
    if (symbol && ["ArrowRight", "ArrowLeft"].includes(event.key)) {
      const all = [...symbol.closest("math").querySelectorAll("[data-symbol]")];
      const next = all[all.indexOf(symbol) + (event.key === "ArrowRight" ? 1 : -1)];
      if (next) {
        symbol.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
      event.preventDefault();
      event.stopPropagation();
    } else if (symbol && ["Enter", " "].includes(event.key)) {
      this.held = this.held === symbol.dataset.symbol ? null : symbol.dataset.symbol;
      this.say(symbol.dataset.symbol);
      event.preventDefault();
    } else if (event.key === "Escape") {
      this.held = null;
      this.say(null);
    }
  }

  async copy() {
    const box = this.part("latex");
    box.hidden = false;
    box.value = this.data.latex;
    box.select();
    try {
      await navigator.clipboard.writeText(this.data.latex);
    } catch {
      document.execCommand("copy");
    }
    this.button("copy").textContent = this.data.words.copied;
  }

  // -- what is drawn -----------------------------------------------------------------------------

  draw() {
    const { data } = this;
    const { words } = data;
    this.part("id").textContent = data.id;
    this.part("name").textContent = data.name;
    this.part("badge").textContent = data.badge;
    this.part("badge").dataset.verdict = data.verdict;
    this.button("numbers").textContent = words.numbers;
    this.button("numbers").hidden = !data.filled;
    this.button("numbers").setAttribute("aria-pressed", this.numbers);
    this.button("copy").textContent = words.copy;
    fill(this.part("formula"), data.mathml);
    fill(this.part("filled"), data.filled ?? "");
    this.part("filled").hidden = !this.numbers || !data.filled;
    this.part("latex").value = data.latex;
    this.tabs();
    this.steps();
    this.changes();
    this.notes();
    this.reachable();
    this.say(this.held);
    this.fit();
  }

  tabs() {
    const { data } = this;
    const shown = [
      ["steps", data.steps.length],
      ["change", data.changes.length],
      ["notes", true],
    ].filter(([, there]) => there);
    if (!shown.some(([name]) => name === this.tab)) this.tab = shown[0][0];
    const nav = this.part("tabs");
    const signature = JSON.stringify([shown, data.words]);
    if (nav.dataset.shown !== signature) {
      nav.dataset.shown = signature;
      nav.replaceChildren(
        ...shown.map(([name]) => {
          const button = make("button", "", data.words[`tab_${name}`]);
          button.type = "button";
          button.dataset.tab = name;
          button.setAttribute("role", "tab");
          return button;
        }),
      );
    }
    for (const button of nav.children) {
      button.setAttribute("aria-selected", button.dataset.tab === this.tab);
    }
    for (const view of this.root.querySelectorAll("[data-view]")) {
      view.hidden = view.dataset.view !== this.tab;
      view.setAttribute("aria-label", data.words[`tab_${view.dataset.view}`]);
    }
  }

  steps() {
    const { data } = this;
    const { words, steps } = data;
    if (!steps.length) return;
    this.place = Math.min(this.place, steps.length - 1);
    this.button("back").textContent = words.back;
    this.button("back").disabled = this.all || this.place === 0;
    this.button("next").textContent = words.next;
    this.button("next").disabled = this.all || this.place === steps.length - 1;
    this.button("all").textContent = words.all;
    this.button("all").setAttribute("aria-pressed", this.all);
    this.part("where").textContent = this.all
      ? words.steps.replace("{n}", steps.length)
      : words.step.replace("{i}", this.place + 1).replace("{n}", steps.length);
    const first = this.all ? 0 : Math.max(this.place - 2, 0);
    const last = this.all ? steps.length - 1 : this.place;
    const list = this.part("steps");
    list.setAttribute("aria-live", "polite");
    list.replaceChildren();
    for (let i = first; i <= last; i += 1) {
      const step = steps[i];
      if (step.part && (i === first || steps[i - 1].part !== step.part)) {
        list.append(make("li", "part", step.part));
      }
      const item = make("li", !this.all && i === this.place ? "now" : "");
      item.append(make("div", "kind", step.kind));
      const body = make("div");
      body.append(framed(step.mathml));
      if (this.numbers && step.filled) body.append(framed(step.filled, "filled"));
      body.append(make("p", "reason", step.reason));
      item.append(body);
      list.append(item);
    }
  }

  changes() {
    const { data } = this;
    const { words, changes } = data;
    if (!changes.length) return;
    const name = this.part("goalname");
    if (name.dataset.shown !== `${words.goal} ${data.result}`) {
      name.dataset.shown = `${words.goal} ${data.result}`;
      const symbol = make("span");
      symbol.innerHTML = data.result;
      name.replaceChildren(`${words.goal}:`, symbol, "=");
    }
    const goal = this.part("goal");
    if (document.activeElement !== goal) goal.value = data.goal;
    goal.setAttribute("aria-label", words.goal);
    const head = make("tr");
    for (const name of [words.symbol, words.now, words.plus10, words.solved]) {
      head.append(make("th", "", name));
    }
    const rows = changes.map((change) => {
      const row = make("tr");
      const name = make("td");
      name.append(framed(change.mathml));
      const ten = make("td", "number", change.plus10);
      ten.append(make("br"), make("small", "", change.elasticity));
      const solved = make("td");
      if (change.form) solved.append(framed(change.form));
      solved.append(make("span", "", change.needs), make("br"), make("small", "", change.how));
      row.append(name, make("td", "number", change.now), ten, solved);
      return row;
    });
    this.part("table").replaceChildren(head, ...rows);
  }

  notes() {
    const { data } = this;
    const box = this.part("notes");
    box.replaceChildren();
    if (data.reason) box.append(make("p", "reason", data.reason));
    for (const [title, items] of data.notes) {
      if (!items.length) continue;
      box.append(make("h4", "", title));
      const list = make("ul", "notes-list");
      list.append(...items.map((item) => make("li", "", item)));
      box.append(list);
    }
  }

  /** One stop of the tab key a formula; arrows go from symbol to symbol. */
  reachable() {
    for (const math of this.root.querySelectorAll("math")) {
      math.querySelectorAll("[data-symbol]").forEach((symbol, i) => {
        if (!symbol.hasAttribute("tabindex")) symbol.setAttribute("tabindex", i ? "-1" : "0");
      });
    }
  }

  say(name) {
    const about = this.part("about");
    const symbol = this.data?.symbols[name];
    for (const element of this.root.querySelectorAll("[data-symbol]")) {
      element.classList.toggle("same", element.dataset.symbol === name);
      element.classList.toggle("held", element.dataset.symbol === this.held);
    }
    const shown = JSON.stringify([name, symbol, this.data?.words.hint]);
    if (about.dataset.said === shown) return;
    about.dataset.said = shown;
    about.replaceChildren();
    if (!symbol) {
      about.append(make("span", "where", this.data?.words.hint ?? ""));
      return;
    }
    const written = make("span");
    fill(written, symbol.mathml);
    about.append(written, ` ${symbol.meaning}`);
    about.append(make("span", "where", ` [${symbol.unit}]`));
    if (symbol.value) {
      about.append(" = ", make("span", "value", symbol.value));
    }
    about.append(make("br"), make("span", "where", symbol.where));
  }

  /** Smaller where a formula is wider than its place; numbers that are wider still are broken
   * into lines, and only what has no place to break is scrolled. */
  fit() {
    let anew = false;
    for (const box of this.root.querySelectorAll(".formula")) {
      if (box.dataset.broken) {
        box.innerHTML = box.dataset.shown;
        delete box.dataset.broken;
        anew = true;
      }
      box.style.fontSize = "";
      box.classList.remove("wide");
      const math = box.firstElementChild;
      if (!math || !box.clientWidth) continue;
      shrink(box);
      if (tooWide(box) && box.classList.contains("filled") && breakLine(math)) {
        box.dataset.broken = "yes";
        shrink(box);
        anew = true;
      }
      box.classList.toggle("wide", tooWide(box));
    }
    if (anew) {
      this.reachable();
      this.say(this.held);
    }
  }
}

// -- formulas that are too wide --------------------------------------------------------------------

const tooWide = (box) => box.scrollWidth > box.clientWidth + 1;

function shrink(box) {
  box.style.fontSize = "";
  const size = parseFloat(getComputedStyle(box).fontSize);
  for (let scale = 1; scale > 0.6 && tooWide(box); scale -= 0.08) {
    box.style.fontSize = `${size * scale}px`;
  }
}

/** Two lines of the widest sum above a fraction bar, else of the whole, before a plus or minus;
 * the one that leaves the shortest lines. False where there is none. */
function breakLine(math) {
  const width = (element) => element.getBoundingClientRect().width;
  const above = [...math.querySelectorAll("mfrac > mrow:first-child")].filter(hasSum);
  above.sort((a, b) => width(b) - width(a));
  const row = above[0] ?? math.querySelector("mrow");
  if (!row || !hasSum(row)) return false;
  const parts = [...row.children];
  const from = row.getBoundingClientRect();
  const longest = (part) => {
    const at = part.getBoundingClientRect().left - from.left;
    return Math.max(at, from.width - at);
  };
  const signs = parts.filter((part, i) => i > 0 && isSign(part));
  const first = signs.reduce((best, sign) => (longest(sign) < longest(best) ? sign : best));
  const place = parts.indexOf(first);
  const table = mathElement("mtable");
  for (const line of [parts.slice(0, place), parts.slice(place)]) {
    const cell = mathElement("mtd");
    const whole = mathElement("mrow");
    whole.append(...line);
    cell.append(whole);
    const tr = mathElement("mtr");
    tr.append(cell);
    table.append(tr);
  }
  row.append(table);
  return true;
}

const isSign = (element) => element.localName === "mo" && ["+", "−"].includes(element.textContent);

const hasSum = (row) => [...row.children].slice(1).some(isSign);

const mathElement = (name) => document.createElementNS("http://www.w3.org/1998/Math/MathML", name);
