// Words and sentences in the reader's language. A template is plain text with {placeholders} and
// **bold** parts; values are put in after the template has been taken apart, so that nothing in a
// value (a request's name from an uploaded file, say) can become markup.
/* global WORDS */

export class Words {
  constructor(language) {
    this.language = language in WORDS ? language : "en";
    this.table = WORDS[this.language];
    this.locale = this.language === "zh" ? "zh-CN" : "en";
    this.plural = new Intl.PluralRules(this.locale);
    this.whole = new Intl.NumberFormat(this.locale, { maximumFractionDigits: 0 });
    this.digits = new Map();
  }

  /** A message as plain text. */
  text(key, values = {}) {
    return this.spans(key, values).map((span) => span.text).join("");
  }

  has(key) {
    return key in this.table;
  }

  /** A message as [{text, bold}]; `n` chooses the plural form. */
  spans(key, values = {}) {
    let template = this.table[key];
    if (template === undefined) return [{ text: key, bold: false }];
    if (typeof template === "object") {
      const form = values.n === 1 ? "one" : this.plural.select(values.n ?? 0);
      template = template[form] ?? template.other;
    }
    const spans = [];
    template.split("**").forEach((part, i) => {
      if (!part) return;
      const text = part.replace(/\{(\w+)(?::(\w+))?\}/g, (_, name, form) =>
        this.value(values[name], form));
      spans.push({ text, bold: i % 2 === 1 });
    });
    return spans;
  }

  value(value, form) {
    if (form === "time") return this.time(value);
    if (typeof value === "number") return this.count(value);
    return String(value ?? "");
  }

  count(value) {
    return Number.isFinite(value) ? this.whole.format(value) : "–";
  }

  /** Nanoseconds as milliseconds or seconds, whichever reads better, with the unit. */
  time(ns) {
    const [number, unit] = this.timeParts(ns);
    return `${number} ${this.text(`unit.${unit}`)}`;
  }

  timeParts(ns) {
    if (!Number.isFinite(ns)) return ["–", "ms"];
    const ms = ns / 1e6;
    if (Math.abs(ms) >= 999.5) return [this.significant(ms / 1e3), "s"];
    return [this.significant(ms, Math.abs(ms) < 1 ? 2 : 3), "ms"];
  }

  /** Three significant digits, without an exponent. */
  significant(value, digits = 3) {
    if (!Number.isFinite(value)) return "–";
    const size = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
    return this.fixed(value, Math.min(Math.max(digits - 1 - size, 0), 6));
  }

  fixed(value, decimals) {
    if (!this.digits.has(decimals)) {
      this.digits.set(decimals, new Intl.NumberFormat(this.locale, {
        minimumFractionDigits: decimals, maximumFractionDigits: decimals,
      }));
    }
    return this.digits.get(decimals).format(value);
  }

  /** A list of names, shortened in the middle. */
  names(names, most = 6) {
    const comma = this.text("list.comma");
    if (names.length <= most) return names.join(comma);
    const head = names.slice(0, most - 2).join(comma);
    return `${head} … ${names[names.length - 1]}`;
  }
}
