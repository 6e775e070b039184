// Colors by meaning in both themes. A hue is a phase, the same everywhere; recompute, waiting and
// swap turn grey under color blindness, so each has its pattern as well (see pen.js).

export const PALETTE = {
  light: {
    decode: "#0072B2", decode2: "#4A9CCB", prefill: "#E69F00", recompute: "#9C3D7A",
    swap: "#009E73", waiting: "#8A95A5", violated: "#C8440A", free: "#C3CBD6",
    ground: "#FFFFFF", panel: "#F8F9FB", ink: "#17202B", muted: "#556170", track: "#E6EAF0",
    stripe: "rgba(23,32,43,.62)", thread: "rgba(255,255,255,.65)",
    line: "#DFE4EB", onDark: "#FFFFFF",
  },
  dark: {
    decode: "#56B4E9", decode2: "#2F7FB0", prefill: "#F0B429", recompute: "#DE94C3",
    swap: "#2CC295", waiting: "#8592A3", violated: "#FF7B42", free: "#465364",
    ground: "#0E131A", panel: "#141A22", ink: "#EAEFF5", muted: "#A0ADBC", track: "#252E3A",
    stripe: "rgba(14,19,26,.72)", thread: "rgba(14,19,26,.72)", line: "#2C3644", onDark: "#0E131A",
  },
};

const FONT =
  "'Source Sans', 'Source Sans 3', 'Noto Sans CJK SC', 'Noto Sans SC', 'PingFang SC', " +
  "'Microsoft YaHei', sans-serif";

/** The theme in force: colors, font, and whether things may move. */
export function readTheme(root, asked) {
  const style = getComputedStyle(root);
  const value = (name) => style.getPropertyValue(name).trim();
  const ground = value("--st-background-color");
  let name = asked;
  if (!name && ground) name = luminance(ground) < 0.5 ? "dark" : "light";
  name ||= matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const colors = { ...PALETTE[name] };
  // The page's own ground and ink win, so that the stage has no edge on a custom theme.
  if (ground && !asked) colors.ground = ground;
  if (value("--st-text-color") && !asked) colors.ink = value("--st-text-color");
  return {
    name,
    colors,
    font: value("--st-font") || FONT,
    still: matchMedia("(prefers-reduced-motion: reduce)").matches,
  };
}

/** 0 (black) to 1 (white) of a CSS color. */
export function luminance(color) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = color;
  const hex = probe.fillStyle;
  if (hex[0] !== "#") return 1;
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
