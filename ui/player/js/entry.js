// What the bundle offers to the outside.

import { Film } from "./film.js";

export function entryPoints() {
  return { Film };
}
