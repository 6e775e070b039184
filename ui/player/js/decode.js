// Bytes of a film to columns. The forms are those of model/film_packing.py: plain numbers,
// differences (d1), differences of differences (d2) and runs (rle), the last three as varints.

const MAGIC = 0x31464c49; // "ILF1", little endian

const PLAIN = {
  u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array,
  u4: Uint32Array, i4: Int32Array, f8: Float64Array,
};

/** {header, tables} of a film file; throws where the bytes are none. */
export function unpackFilm(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteLength < 8 || view.getUint32(0, true) !== MAGIC) throw new Error("not a film");
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const body = bytes.subarray(8 + length);
  const tables = {};
  for (const [table, columns] of Object.entries(header.tables)) {
    tables[table] = {};
    for (const [name, [form, count, first, size]] of Object.entries(columns)) {
      tables[table][name] = unpackColumn(form, count, body.subarray(first, first + size));
    }
  }
  delete header.tables;
  return { header, tables };
}

/** The numbers of one column. */
export function unpackColumn(form, count, bytes) {
  if (form in PLAIN) return plainNumbers(PLAIN[form], count, bytes);
  const numbers = readVarints(bytes);
  if (form === "rle") return expandRuns(numbers, count);
  const orders = form === "d2" ? 2 : 1;
  for (let order = 0; order < orders; order++) {
    for (let i = 1; i < numbers.length; i++) numbers[i] += numbers[i - 1];
  }
  return numbers;
}

function plainNumbers(Type, count, bytes) {
  // A typed array needs an aligned start; the bytes may begin anywhere in a larger buffer.
  const aligned = bytes.byteOffset % Type.BYTES_PER_ELEMENT === 0;
  const source = aligned ? bytes : bytes.slice();
  return new Type(source.buffer, source.byteOffset, count);
}

function expandRuns(numbers, count) {
  const runs = numbers.length ? numbers[0] : 0;
  const values = new Float64Array(count);
  let value = 0;
  let at = 0;
  for (let i = 0; i < runs; i++) {
    value += numbers[1 + i];
    const end = at + numbers[1 + runs + i];
    values.fill(value, at, end);
    at = end;
  }
  return values;
}

/** Zigzag varints; whole numbers up to 2^53 survive, hence no bit shifts past 28 bits. */
export function readVarints(bytes) {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] < 128) count++;
  const values = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    let byte = bytes[at++];
    let folded = byte & 127;
    let scale = 128;
    while (byte > 127) {
      byte = bytes[at++];
      folded += (byte & 127) * scale;
      scale *= 128;
    }
    values[i] = folded % 2 ? -(folded + 1) / 2 : folded / 2;
  }
  return values;
}
