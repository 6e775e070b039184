// The decision in one line on the stage: lecture mode, where the inspector is hidden.

const TITLE = 18;
const BODY = 16;

/** `decision` as sentences.js tells it; null while the film runs too fast to be read. */
export function drawSaid(pen, box, decision, words) {
  const { colors } = pen;
  pen.box(box.x, box.y, box.w, box.h, { radius: 4, fill: colors.panel });
  pen.rect(box.x, box.y, 5, box.h, (decision && colors[decision.tone]) ?? colors.waiting);
  const baseline = box.y + 21;
  const right = box.x + box.w - 8;
  let x = box.x + 16;
  if (!decision) {
    pen.text(words.text("why.playing"), x, baseline, { size: BODY, color: colors.muted });
    return;
  }
  const write = (text, size, weight) => {
    x += pen.text(text, x, baseline, { size, weight, most: Math.max(right - x, 0) });
  };
  write(plain(decision.title), TITLE, 700);
  x += 14;
  for (const { text, bold } of decision.body) {
    // What does not fit ends with an ellipsis, and nothing follows that.
    const cut = x + pen.width(text, BODY, bold ? 700 : 400) > right;
    write(text, BODY, bold ? 700 : 400);
    if (cut) break;
  }
}

function plain(spans) {
  return spans.map((span) => span.text).join("");
}
