// SPDX-License-Identifier: MIT
// node cross_weights.mjs FILE: cross-attention of two layers with two heads, all of whose 100 rows
// look at the column of the same number.
import { writeFileSync } from "node:fs";

const SIZE = 100,
    BYTES = 2 * SIZE * SIZE * 4;
const layer = Float32Array.from({ length: 2 * SIZE * SIZE }, (_, n) =>
    Number((n % (SIZE * SIZE)) % (SIZE + 1) === 0),
);
const tensor = (n) => ({
    dtype: "F32",
    shape: [2, SIZE, SIZE],
    data_offsets: [n * BYTES, (n + 1) * BYTES],
});
const header = Buffer.from(JSON.stringify({ "cross.0": tensor(0), "cross.1": tensor(1) }));
const length = Buffer.alloc(8);
length.writeBigUInt64LE(BigInt(header.length));
const bytes = Buffer.from(layer.buffer);
writeFileSync(process.argv[2], Buffer.concat([length, header, bytes, bytes]));
