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
    const { kind, layer, rows, columns, width, inner } = steps;
    const all = { kind, layer, rows, columns, width, inner, linear: {} };
    all.normFirst = steps.norm_first;
    all.norm = { kind: steps.norm, eps: steps.norm_eps };
    all.turn = steps.turn ?? null;
    for (const name of ARRAYS)
        lazy(all, name, () => (steps[name] ? decodeNumbers(steps[name]) : null));
    for (const name of LINEARS) all.linear[name] = readLinear(matrices?.[name]);
    return all;
}

function recordOf(list, kind, layer) {
    return list?.find((record) => record.kind === kind && record.layer === layer);
}

// Computations by kind and layer; a promise while one is asked for. Those in the page belong to a
// sentence, those of a live page to what it was asked: answers that follow for the same text and
// changes have the same steps.
const ofSentence = new WeakMap();
let ofQuestion = { question: "", computations: new Map() };

function computationsOf(app, sentence) {
    if (!app.live) {
        if (!ofSentence.has(sentence)) ofSentence.set(sentence, new Map());
        return ofSentence.get(sentence);
    }
    const question = JSON.stringify([app.live.text, app.live.closed]);
    if (ofQuestion.question !== question) ofQuestion = { question, computations: new Map() };
    return ofQuestion.computations;
}

async function askFor(app, known, key, { kind, layer }) {
    try {
        const text = await ask({
            ...app.live.asked(),
            changes: readChanges(app.live.closed),
            compute: { kind, layer },
        });
        const { steps, matrices } = JSON.parse(text);
        const [record] = steps;
        known.set(key, record ? readComputation(record, matrices[0]) : null);
    } catch (error) {
        known.delete(key);
        throw error;
    }
}

// The computation of the chosen attention, null if there is none, or a promise after which to ask
// again.
export function computationOf(app) {
    const { kind, layer } = app.state,
        sentence = app.tokens.sentences[app.state.sentence],
        known = computationsOf(app, sentence),
        key = `${kind}.${layer}`;
    if (known.has(key)) return known.get(key);
    const steps = recordOf(sentence.steps, kind, layer);
    if (steps)
        known.set(key, readComputation(steps, recordOf(app.tokens.matrices, kind, layer)));
    else known.set(key, app.live ? askFor(app, known, key, app.state) : null);
    return known.get(key);
}
