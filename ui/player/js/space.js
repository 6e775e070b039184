// Space plays and pauses wherever the focus is, as the badge on Play says: a learner who has just
// opened the page or clicked a button has not put the focus on the stage.

const TAKES_SPACE = "input, select, textarea, [contenteditable], dialog, [role=dialog], "
  + "[role=slider], [role=combobox], [role=listbox], [role=option], [role=menuitem], "
  + "[role=checkbox], [role=switch]";
const BUTTONS = "button, summary, [role=button], [role=radio], [role=tab]";
const LEAST_SEEN = 80; // CSS pixels of the stage that make it "on screen"

/** Listen in the whole page while `signal` lasts; the player says `lab`, `stage`, `range`. */
export function listenForSpace(player, signal) {
  // Once a key is pressed every focus is visible, so how it came is noted when it comes.
  let clicked = document.activeElement?.matches(":focus-visible") ? null : document.activeElement;
  let held = false;
  const note = (event) => {
    const target = event.composedPath()[0];
    clicked = target.matches?.(":focus-visible") ? null : target;
  };
  document.addEventListener("focusin", note, { signal });
  player.lab.addEventListener("focusin", note, { signal }); // within a shadow root it stays there
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || event.ctrlKey || event.metaKey || event.altKey) return;
    const path = event.composedPath();
    if (!onScreen(player.stage) || isOfOther(player.lab, path)) return;
    const [target] = path;
    if (target !== player.range && takesSpace(target, clicked)) return;
    held = true;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat) player.toggle();
  }, { signal, capture: true });
  document.addEventListener("keyup", (event) => {
    if (event.key !== " " || !held) return;
    held = false;
    event.preventDefault(); // some browsers press a button only now
  }, { signal, capture: true });
}

/** Is Space this element's own key? A button's only where the keyboard brought the focus there. */
function takesSpace(target, clicked) {
  if (target.closest?.(TAKES_SPACE)) return true;
  return Boolean(target.closest?.(BUTTONS)) && target !== clicked;
}

function isOfOther(lab, path) {
  const of = path.find((node) => node.classList?.contains("lab"));
  return of !== undefined && of !== lab;
}

function onScreen(stage) {
  const box = stage.getBoundingClientRect();
  return box.width > 0 && box.bottom > LEAST_SEEN && box.top < globalThis.innerHeight - LEAST_SEEN;
}
