// What the bundle offers to the outside: a Streamlit component, and a file that stands alone.
/* global STYLE */

import { ComparePlayer } from "./compare.js";
import { Film } from "./film.js";
import { RunPlayer } from "./run.js";
import { decisionsOf } from "./sentences.js";
import { Words } from "./words.js";

/** Options and films out of one run of bytes: lengths as little-endian 32-bit numbers. */
export function unpackData(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const options = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const films = [];
  let at = 4 + length;
  for (const size of options.sizes) {
    at += -at & 7;
    films.push(bytes.slice(at, at + size));
    at += size;
  }
  return { options, films };
}

export function packData(options, films) {
  const sizes = films.map((film) => film.byteLength);
  const text = new TextEncoder().encode(JSON.stringify({ ...options, sizes }));
  const parts = [new Uint8Array(4), text];
  new DataView(parts[0].buffer).setUint32(0, text.length, true);
  let at = 4 + text.length;
  for (const film of films) {
    const gap = -at & 7;
    parts.push(new Uint8Array(gap), film);
    at += gap + film.byteLength;
  }
  const bytes = new Uint8Array(at);
  let to = 0;
  for (const part of parts) {
    bytes.set(part, to);
    to += part.byteLength;
  }
  return bytes;
}

const players = new WeakMap();

function makePlayer(root, options, host) {
  return options.mode === "compare" ? new ComparePlayer(root, host) : new RunPlayer(root, host);
}

/** Called by Streamlit at each rerun with the same parent element: the player stays. */
function component({ data, parentElement, setStateValue }, bundle) {
  const { options, films } = unpackData(asBytes(data));
  let player = players.get(parentElement);
  if (!player) {
    const root = document.createElement("div");
    parentElement.append(root);
    const host = {
      report: (view) => host.set("view", view),
      want: (row) => host.set("want", row),
      source: () => bundle.toString(),
      style: () => STYLE,
      pack: packData,
    };
    player = makePlayer(root, options, host);
    player.host = host;
    player.mountPoint = root;
    players.set(parentElement, player);
  }
  player.host.set = setStateValue;
  player.setData(options, films);
  return () => {
    players.delete(parentElement);
    player.destroy();
    player.mountPoint.remove();
  };
}

function asBytes(data) {
  if (data instanceof Uint8Array) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** The downloaded film: all windows are there, nothing is asked of anybody. */
function standalone(root, text, bundle) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const { options, films } = unpackData(bytes);
  const host = {
    report: () => {},
    want: () => {},
    source: () => bundle.toString(),
    style: () => STYLE,
    pack: packData,
  };
  const player = makePlayer(root, options, host);
  if (options.mode !== "compare") {
    // All windows are known before the first is shown, so none is ever asked for.
    player.setData({ ...options, iteration: 0 }, films);
    for (const film of films) player.raw.set(new Film(film).first, film);
    player.seek(options.iteration ?? 0);
    player.followLabel(options.request);
    player.arrived = true;
  } else {
    player.setData(options, films);
  }
  globalThis.iterationLab = player;
  return player;
}

export function entryPoints() {
  return { Film, Words, decisionsOf, component, standalone, packData, unpackData };
}
