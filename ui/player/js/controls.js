// Buttons under the stage: real elements with names, so that keyboard and screen reader find them.

import { el, icon } from "./dom.js";

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
export const KINDS = ["any", "preempt", "swap", "miss", "refuse", "arrive", "reject"];
export const ITERATIONS_PER_S = 10; // at speed 1

export class Controls {
  constructor(player) {
    this.player = player;
    const button = (name, action, ...content) => el("button", {
      type: "button", class: `button ${name}`, onclick: action,
    }, ...content);
    this.back = button("back", () => player.step(-1), icon("back"));
    this.playIcon = el("span", { class: "icon" });
    this.playText = el("span", {});
    this.playKey = el("kbd", {});
    this.play = button("play", () => player.toggle(), this.playIcon, this.playText, this.playKey);
    this.forward = button("forward", () => player.step(1), icon("forward"));
    this.speed = el("select", { class: "select", onchange: () =>
      player.setSpeed(Number(this.speed.value)) });
    this.speedLabel = el("span", { class: "quiet" });
    this.kind = el("select", { class: "select", onchange: () => player.setKind(this.kind.value) });
    this.previousText = el("span", { class: "wide-only" });
    this.nextText = el("span", { class: "wide-only" });
    this.previous = button("previous", () => player.jump(-1), icon("previous"), this.previousText);
    this.next = button("next", () => player.jump(1), this.nextText, icon("next"));
    this.more = button("more", () => this.toggleMenu(), icon("more"));
    this.more.setAttribute("aria-haspopup", "true");
    this.menu = el("div", { class: "menu", hidden: true, role: "group" });
    this.root = el("div", { class: "controls", role: "group" },
      el("div", { class: "group" }, this.back, this.play, this.forward),
      el("label", { class: "group speed" }, this.speedLabel, this.speed),
      el("div", { class: "group jump" }, this.previous, this.kind, this.next),
      el("div", { class: "group menu-holder" }, this.more, this.menu));
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.menu.hidden) {
        this.toggleMenu(false);
        this.more.focus();
        event.stopPropagation();
      }
    });
  }

  /** Words, choices and the menu anew: after a change of language, film or mode. */
  reset() {
    const { player } = this;
    const { words } = player;
    const name = (node, key) => {
      node.setAttribute("aria-label", words.text(key));
      node.title = words.text(key);
    };
    name(this.back, "control.back");
    name(this.forward, "control.forward");
    name(this.more, "control.more");
    name(this.kind, "control.kind");
    this.root.setAttribute("aria-label", words.text("help.title"));
    this.speedLabel.textContent = words.text("control.speed");
    this.playKey.textContent = words.text("control.space");
    this.speed.replaceChildren(...SPEEDS.map((speed) =>
      el("option", { value: speed }, this.speedText(speed))));
    this.speed.value = String(player.speed);
    this.speed.setAttribute("aria-label", words.text("control.speed"));
    const kinds = KINDS.filter((kind) =>
      !["swap", "reject"].includes(kind) || player.hasMarks(kind));
    this.kind.replaceChildren(...kinds.map((kind) =>
      el("option", { value: kind }, words.text(`kind.${kind}`))));
    this.kind.value = kinds.includes(player.kind) ? player.kind : "any";
    this.previousText.textContent = words.text("control.previous");
    this.nextText.textContent = words.text("control.next");
    this.buildMenu();
    this.update();
  }

  speedText(speed) {
    const { player } = this;
    const { words } = player;
    const factor = { 0.25: "¼×", 0.5: "½×" }[speed] ?? `${speed}×`;
    if (player.pace === "time") {
      if (!player.options.film_s) return `${factor.replace("×", "")} ${words.text("speed.time")}`;
      const seconds = words.significant(player.options.film_s / speed, 2);
      return `${factor}  ${words.text("speed.film", { n: seconds })}`;
    }
    const rate = words.significant(ITERATIONS_PER_S * speed, 2);
    return `${factor}  ${words.text("speed.iterations", { n: rate })}`;
  }

  /** What changes while playing. */
  update() {
    const { player } = this;
    const { words } = player;
    if (this.shownPlaying !== player.playing || this.shownLanguage !== words.language) {
      this.shownPlaying = player.playing;
      this.shownLanguage = words.language;
      this.playIcon.replaceChildren(icon(player.playing ? "pause" : "play"));
      this.playText.textContent = words.text(player.playing ? "control.pause" : "control.play");
    }
    const kind = words.text(`kind.${player.kind}`);
    for (const [node, key] of [[this.previous, "previous"], [this.next, "next"]]) {
      node.setAttribute("aria-label", `${words.text(`control.${key}`)} ${kind}`);
      const arrow = key === "next" ? "→" : "←";
      node.title = `${words.text(`control.${key}`)} ${kind} (Shift+${arrow})`;
    }
    if (this.speed.value !== String(player.speed)) this.speed.value = String(player.speed);
    this.recordButton?.replaceChildren(
      words.text(player.recorder ? "control.webm_stop" : "control.webm"));
  }

  buildMenu() {
    const { player } = this;
    const { words } = player;
    const choice = (key, values, value, change) => {
      const select = el("select", { class: "select", onchange: () => change(select.value) },
        ...values.map((v) => el("option", { value: v }, words.text(`${key}.${v}`))));
      select.value = value;
      return el("label", { class: "menu-row" }, el("span", {}, words.text(key)), select);
    };
    const action = (key, run) => el("button", { type: "button", class: "menu-item",
      onclick: () => {
        this.toggleMenu(false);
        run();
      } }, words.text(key));
    this.recordButton = action("control.webm", () => player.record());
    const rows = [
      choice("control.pace", ["iterations", "time"], player.pace, (v) => player.setPace(v)),
      choice("control.events", ["slow", "pause", "play"], player.atEvents, (v) => {
        player.atEvents = v;
      }),
      action(player.lecture ? "control.leave" : "control.lecture", () =>
        player.setLecture(!player.lecture)),
    ];
    if (player.panelNames) rows.splice(2, 0, this.panelChoice());
    rows.push(
      action("control.html", () => player.downloadFilm()),
      action("control.png", () => player.downloadPicture()),
    );
    if (globalThis.MediaRecorder) rows.push(this.recordButton);
    rows.push(action("control.help", () => player.help(true)));
    this.menu.replaceChildren(...rows);
  }

  /** Which of queue, batch and KV are shown; at most two in lecture mode. */
  panelChoice() {
    const { player } = this;
    const { words } = player;
    const titles = { queue: "strip.waiting", batch: "strip.batch", kv: "strip.kv" };
    const boxes = player.panelNames.map((name) => {
      const box = el("input", { type: "checkbox", onchange: () =>
        player.showPanel(name, box.checked) });
      box.checked = player.panels.includes(name);
      return el("label", { class: "check" }, box, words.text(titles[name]));
    });
    return el("fieldset", { class: "menu-row" },
      el("legend", {}, words.text("control.panels")), ...boxes);
  }

  toggleMenu(open = this.menu.hidden) {
    this.menu.hidden = !open;
    this.more.setAttribute("aria-expanded", String(open));
    if (open) this.menu.querySelector("select, button, input")?.focus();
  }
}
