// Drawing tools: text that fits, shapes of the marks, and areas filled by phase with the pattern
// that belongs to the hue. Lengths are in units of the layout; `scale` is device pixels per unit.

export class Pen {
  constructor(context, theme, scale) {
    this.context = context;
    this.scale = scale;
    this.setTheme(theme);
    this.widths = new Map();
  }

  setTheme(theme) {
    this.theme = theme;
    this.colors = theme.colors;
    this.patterns = new Map();
  }

  font(size, weight = 400) {
    const font = `${weight} ${size}px ${this.theme.font}`;
    if (this.lastFont !== font) {
      this.context.font = font;
      this.lastFont = font;
    }
    return font;
  }

  width(text, size, weight = 400) {
    const key = `${weight} ${size} ${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      this.font(size, weight);
      width = this.context.measureText(text).width;
      if (this.widths.size > 4000) this.widths.clear();
      this.widths.set(key, width);
    }
    return width;
  }

  /** The text, cut with an ellipsis where it is wider than `most`. */
  fit(text, size, weight, most) {
    if (this.width(text, size, weight) <= most) return text;
    let low = 0;
    let high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.width(`${text.slice(0, middle)}…`, size, weight) <= most) low = middle;
      else high = middle - 1;
    }
    return low ? `${text.slice(0, low)}…` : "";
  }

  /** Text on its baseline; returns its width. */
  text(text, x, y, { size = 13, weight = 400, color, align = "left", most = Infinity } = {}) {
    const shown = most < Infinity ? this.fit(text, size, weight, most) : text;
    const width = this.width(shown, size, weight);
    this.font(size, weight);
    const c = this.context;
    c.fillStyle = color ?? this.colors.ink;
    const left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
    c.fillText(shown, left, y);
    return width;
  }

  rect(x, y, w, h, color) {
    this.context.fillStyle = color;
    this.context.fillRect(x, y, w, h);
  }

  line(x1, y1, x2, y2, color, width = 1) {
    const c = this.context;
    c.strokeStyle = color;
    c.lineWidth = width;
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.stroke();
  }

  path(x, y, w, h, radius) {
    const c = this.context;
    c.beginPath();
    if (radius) c.roundRect(x, y, w, h, Math.min(radius, w / 2, h / 2));
    else c.rect(x, y, w, h);
  }

  box(x, y, w, h, { radius = 0, fill, stroke, width = 1 } = {}) {
    if (w <= 0 || h <= 0) return;
    const c = this.context;
    this.path(x, y, w, h, radius);
    if (fill) {
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.stroke();
    }
  }

  /** A box filled by phase. */
  area(phase, x, y, w, h, radius = 0) {
    if (w <= 0 || h <= 0) return;
    this.path(x, y, w, h, radius);
    this.fillPhase(phase);
  }

  /** Fill the current path by phase: its color, then its pattern. */
  fillPhase(phase) {
    const c = this.context;
    const [color, kind, stroke] = this.look(phase);
    if (color) {
      c.fillStyle = color;
      c.fill();
    }
    if (kind) {
      c.fillStyle = this.pattern(kind, stroke);
      c.fill();
    }
  }

  /** [color, pattern, color of the pattern] of a phase. */
  look(phase) {
    const k = this.colors;
    switch (phase) {
      case "decode": return [k.decode];
      case "decode2": return [k.decode2];
      case "prefill": return [k.prefill, "diagonal", k.stripe];
      case "cached": return [tint(k.prefill, 0.22), "dots", k.prefill];
      case "recompute": return [k.recompute, "cross", k.thread];
      case "swap": return [k.swap, "horizontal", k.thread];
      case "waiting": return [k.waiting];
      case "stalled": return [tint(k.decode, 0.35)];
      case "kept": return [k.ground, "thin", k.free];
      case "reserved": return [k.ground, "thin", k.free];
      case "idle": return [k.ground, "thin", k.free];
      case "no_budget": return [k.ground, "diagonal", k.waiting];
      case "no_slot": return [tint(k.waiting, 0.35), "vertical", k.waiting];
      case "after_preemption": return [tint(k.recompute, 0.35), "cross", k.ground];
      case "swapped_first": return [tint(k.swap, 0.35), "horizontal", k.ground];
      case "batch_running": return [tint(k.waiting, 0.25)];
      case "violated": return [k.violated];
      default: return [k[phase] ?? k.waiting];
    }
  }

  pattern(kind, stroke) {
    const key = `${kind} ${stroke}`;
    if (!this.patterns.has(key)) this.patterns.set(key, this.makePattern(kind, stroke));
    return this.patterns.get(key);
  }

  /** A tile drawn in device pixels, so that stripes stay sharp at any zoom. */
  makePattern(kind, stroke) {
    const unit = { diagonal: 7, cross: 6, horizontal: 5, vertical: 6, thin: 6, dots: 4 }[kind];
    const pixels = Math.max(3, Math.round(unit * this.scale));
    const tile = document.createElement("canvas");
    tile.width = tile.height = pixels;
    const c = tile.getContext("2d");
    c.strokeStyle = c.fillStyle = stroke;
    const weight = { diagonal: 1.9, cross: 1.1, horizontal: 1.6, vertical: 1.4, thin: 1, dots: 1 };
    c.lineWidth = weight[kind] * this.scale;
    c.beginPath();
    const rising = (from) => {
      c.moveTo(from - pixels, pixels * 2);
      c.lineTo(from + pixels * 2, -pixels);
    };
    if (kind === "diagonal" || kind === "thin" || kind === "cross") {
      for (const shift of [-pixels, 0, pixels]) rising(shift);
    }
    if (kind === "cross") {
      for (const shift of [-pixels, 0, pixels]) {
        c.moveTo(shift - pixels, -pixels);
        c.lineTo(shift + pixels * 2, pixels * 2);
      }
    }
    if (kind === "horizontal") {
      c.moveTo(0, pixels / 2);
      c.lineTo(pixels, pixels / 2);
    }
    if (kind === "vertical") {
      c.moveTo(pixels / 2, 0);
      c.lineTo(pixels / 2, pixels);
    }
    if (kind === "dots") {
      c.arc(pixels / 2, pixels / 2, this.scale * 0.9, 0, Math.PI * 2);
      c.fill();
    } else {
      c.stroke();
    }
    const pattern = this.context.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(unit / pixels));
    return pattern;
  }

  // -- marks ------------------------------------------------------------------------------------

  polygon(points, fill, stroke, width = 1.4) {
    const c = this.context;
    c.beginPath();
    points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
    c.closePath();
    if (fill) {
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.lineJoin = "round";
      c.stroke();
    }
  }

  arrival(x, y, size = 4.5) {
    this.polygon([[x - size, y - size], [x + size, y - size], [x, y + size * 0.8]],
      this.colors.waiting);
  }

  preemption(x, y, size = 5) {
    this.polygon([[x, y - size], [x + size, y], [x, y + size], [x - size, y]],
      this.colors.recompute);
  }

  /** A square with an arrow's notch: blocks that move to host memory, or back. */
  swap(x, y, out, size = 4.5) {
    const tip = out ? size : -size;
    this.polygon([[x - size, y - tip], [x + size, y - tip], [x + size, y], [x, y + tip * 1.2],
      [x - size, y]], this.colors.swap);
  }

  rejection(x, y, size = 3.6) {
    this.line(x - size, y - size, x + size, y + size, this.colors.violated, 2.2);
    this.line(x - size, y + size, x + size, y - size, this.colors.violated, 2.2);
  }

  /** A promise: filled is surely lost, hollow is above the bound but can recover. */
  violation(x, y, certain, size = 5.5) {
    const points = [[x, y - size], [x + size * 1.05, y + size * 0.85],
      [x - size * 1.05, y + size * 0.85]];
    if (!certain) {
      this.polygon(points, null, this.colors.violated, 1.6);
      return;
    }
    this.polygon(points, this.colors.violated, this.colors.violated, 1);
    const ink = this.theme.name === "dark" ? this.colors.ground : "#FFFFFF";
    this.rect(x - size * 0.12, y - size * 0.4, size * 0.24, size * 0.6, ink);
    this.rect(x - size * 0.12, y + size * 0.36, size * 0.24, size * 0.24, ink);
  }

  /** A bar against a bound: `share` of the bound is reached, the tick stands at two thirds. */
  bullet(x, y, w, share, violated) {
    const bound = w * 0.72;
    this.rect(x, y, w, 3.5, this.colors.track);
    const reach = Number.isFinite(share) ? Math.min(share * bound, w) : 0;
    this.rect(x, y, reach, 3.5, violated ? this.colors.violated : this.colors.muted);
    this.rect(x + bound - 0.8, y - 2.5, 1.6, 8.5, this.colors.ink);
  }

  /** A request's name in a box, as it marks a boundary. */
  chip(text, x, y, size, { align = "left", bold = 600 } = {}) {
    const w = this.width(text, size, bold) + 5;
    const left = align === "center" ? x - w / 2 : x;
    this.box(left, y - size * 0.78, w, size * 1.16, {
      radius: 3, fill: this.colors.ground, stroke: this.colors.ink, width: 0.8,
    });
    this.text(text, left + 2.5, y + size * 0.14, { size, weight: bold });
    return w;
  }
}

/** A color (#RRGGBB) with an opacity. */
export function tint(color, alpha) {
  if (color[0] !== "#") return color;
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
  return `rgba(${red},${green},${blue},${alpha})`;
}
