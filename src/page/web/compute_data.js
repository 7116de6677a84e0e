// SPDX-License-Identifier: MIT
// The matrices of one attention, step by step (src/page/page_compute.h): those in the page, or those
// that a live page asks for.
import { decodeFloats, lazy } from "./data.js";
import { ask } from "./ask.js";
import { readChanges } from "./live.js";

// The value of a 16-bit float.
function halfValue(bits) {
    const sign = bits & 0x8000 ? -1 : 1,
        exponent = (bits >> 10) & 31,
        fraction = bits & 1023;
    return exponent === 0
        ? sign * fraction * 2 ** -24
        : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// Base64 of 32-bit floats, or "." and base64 of 16-bit floats.
export function decodeNumbers(text) {
    if (!text.startsWith(".")) return decodeFloats(text);
    const letters = atob(text.slice(1));
    return Float32Array.from({ length: letters.length / 2 }, (_, n) =>
        halfValue(letters.charCodeAt(2 * n) | (letters.charCodeAt(2 * n + 1) << 8)),
    );
}

const ARRAYS = [
    "heads",
    "words",
    "codes",
    "stream",
    "input",
    "memory",
    "added",
    "joined",
    "ff_input",
    "inside",
    "ff_added",
    "result",
];
const LINEARS = ["q", "k", "v", "o", "in", "out", "norm", "ff_norm"];

// {outputs, inputs, weight: [outputs][inputs], bias}; null: it is not here.
function readLinear(record) {
    if (!record) return null;
    const linear = { outputs: record.outputs, inputs: record.inputs };
    lazy(linear, "weight", () => decodeNumbers(record.weight));
    lazy(linear, "bias", () => decodeNumbers(record.bias));
    return linear;
}

// A record of "steps" with its arrays decoded when they are used, and with its matrices; what is not
// known is null.
export function readComputation(steps, matrices) {
    const { kind, layer, rows, columns, width, inner, norm_first: normFirst } = steps;
    const all = { kind, layer, rows, columns, width, inner, normFirst, linear: {} };
    for (const name of ARRAYS)
        lazy(all, name, () => (steps[name] ? decodeNumbers(steps[name]) : null));
    for (const name of LINEARS) all.linear[name] = readLinear(matrices?.[name]);
    return all;
}

function recordOf(list, kind, layer) {
    return list?.find((record) => record.kind === kind && record.layer === layer);
}

// Computations by sentence, kind, layer and changes; a promise while it is asked for.
const computations = new WeakMap();

function keepComputation(sentence, key, value) {
    if (!computations.has(sentence)) computations.set(sentence, new Map());
    computations.get(sentence).set(key, value);
    return value;
}

async function askFor(app, sentence, key, { kind, layer }) {
    const text = await ask({
        text: app.live.text,
        changes: readChanges(app.live.closed),
        compute: { kind, layer },
    });
    const { steps, matrices } = JSON.parse(text);
    const [record] = steps;
    return keepComputation(sentence, key, record ? readComputation(record, matrices[0]) : null);
}

// The computation of the chosen attention, null if there is none, or a promise of either.
export function computationOf(app) {
    const { kind, layer } = app.state,
        sentence = app.tokens.sentences[app.state.sentence],
        key = `${kind}.${layer}`;
    const before = computations.get(sentence)?.get(key);
    if (before !== undefined) return before;
    const steps = recordOf(sentence.steps, kind, layer);
    if (steps)
        return keepComputation(
            sentence,
            key,
            readComputation(steps, recordOf(app.tokens.matrices, kind, layer)),
        );
    if (!app.live) return keepComputation(sentence, key, null);
    return keepComputation(sentence, key, askFor(app, sentence, key, app.state));
}
