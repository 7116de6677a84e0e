// SPDX-License-Identifier: MIT
// node large_weights.mjs FILE WORDS LAYERS HEADS TOKENS: attention weights as another program might
// save them, a tensor of bf16 for each layer, and their words. Every head has a place that it looks
// at, and a little everywhere else.
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Where row i of a head looks, and how much of it goes there.
const PLACES = [
    (i) => Math.max(0, i - 1),
    (i, tokens) => Math.min(tokens - 1, i + 1),
    (i) => i,
    () => 0,
    (_, tokens) => tokens - 1,
    (i, tokens) => tokens - 1 - i,
    (i, tokens) => (i * 7) % tokens,
    (i) => i - (i % 16),
];

export function placeOf(map, i, tokens) {
    return PLACES[map % PLACES.length](i, tokens);
}

export function wordOf(n) {
    return n % 40 === 39 ? "." : `word${n}`;
}

export function shareOf(map) {
    return map % 11 === 0 ? 0 : 0.3 + 0.06 * (map % 11);
}

// The 16 upper bits of a float, rounded.
function bf16(value) {
    const bits = new Uint32Array(Float32Array.of(value).buffer)[0];
    return (bits + 0x8000) >>> 16;
}

function layerBytes(layer, heads, tokens) {
    const values = new Uint16Array(heads * tokens * tokens);
    for (let head = 0; head < heads; head++) {
        const map = layer * heads + head,
            share = shareOf(map);
        // Two levels by turns: their mean is that of equal weights.
        const levels = [0.5, 1.5].map((part) => bf16((part * (1 - share)) / tokens));
        for (let i = 0; i < tokens; i++) {
            const row = (head * tokens + i) * tokens;
            for (let j = 0; j < tokens; j++) values[row + j] = levels[(i + j) % 2];
            const place = row + placeOf(map, i, tokens);
            values[place] = bf16(share + (((place - row + i) % 2) + 0.5) * ((1 - share) / tokens));
        }
    }
    return Buffer.from(values.buffer);
}

function writeWeights(file, layers, heads, tokens) {
    const size = heads * tokens * tokens * 2;
    const header = {};
    for (let layer = 0; layer < layers; layer++)
        header[`layer.${layer}`] = {
            dtype: "BF16",
            shape: [1, heads, tokens, tokens],
            data_offsets: [layer * size, (layer + 1) * size],
        };
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    const out = openSync(file, "w");
    for (const bytes of [length, text]) writeSync(out, bytes);
    for (let layer = 0; layer < layers; layer++) writeSync(out, layerBytes(layer, heads, tokens));
    closeSync(out);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const [file, words, ...sizes] = process.argv.slice(2);
    const [layers, heads, tokens] = sizes.map(Number);
    writeWeights(file, layers, heads, tokens);
    writeFileSync(words, JSON.stringify(Array.from({ length: tokens }, (_, n) => wordOf(n))));
}
