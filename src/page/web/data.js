// SPDX-License-Identifier: MIT
// Reads the data of the page, JSON with numbers as base64, into the objects that the views share.
// Numbers are decoded when they are first used: a page may have a hundred million weights.

export const KIND_WORDS = {
    encoder: "Encoder",
    decoder: "Decoder",
    cross: "Cross",
};

export function decodeBytes(text) {
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let n = 0; n < letters.length; n++) bytes[n] = letters.charCodeAt(n);
    return bytes;
}

// Little-endian, as is every machine that runs a browser.
export function decodeFloats(text) {
    return new Float32Array(decodeBytes(text).buffer);
}

// A property that is computed when it is first read.
export function lazy(object, name, make) {
    Object.defineProperty(object, name, {
        configurable: true,
        enumerable: true,
        get() {
            const value = make();
            Object.defineProperty(object, name, { value, enumerable: true });
            return value;
        },
    });
}

// ------------------------------------------------------- compact weights -----
// Per row: the largest weight m in six letters, then two letters q for each weight that the row
// sees, which is m (q / 4095)^2. The format and its error are described in src/page/page_weights.h.

const SCALE_LETTERS = 6;
const LEVELS = 4095;
const VALUES = new Uint8Array(128);
[..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].forEach((letter, n) => {
    VALUES[letter.charCodeAt(0)] = n;
});

// Columns that row i may look at.
export function seenColumns(head, i) {
    return head.causal ? Math.min(i + 1, head.columns) : head.columns;
}

function rowBegin(head, i) {
    const cells = head.causal ? (i * (i + 1)) / 2 : i * head.columns;
    return i * SCALE_LETTERS + 2 * cells;
}

function compactScale(head, i) {
    const at = rowBegin(head, i);
    return decodeFloats(`${head.text.slice(at, at + SCALE_LETTERS)}==`)[0];
}

function decodeCompactRow(head, i, row) {
    const { text } = head,
        count = seenColumns(head, i);
    const scale = compactScale(head, i) / LEVELS / LEVELS;
    let at = rowBegin(head, i) + SCALE_LETTERS;
    for (let j = 0; j < count; j++, at += 2) {
        const q = (VALUES[text.charCodeAt(at)] << 6) | VALUES[text.charCodeAt(at + 1)];
        row[j] = q * q * scale;
    }
}

function decodeCompact(head) {
    const weights = new Float32Array(head.rows * head.columns);
    for (let i = 0; i < head.rows; i++)
        decodeCompactRow(head, i, weights.subarray(i * head.columns, (i + 1) * head.columns));
    return weights;
}

// The heads that were decoded last; all of them would take too much memory.
const KEPT = 16;
const kept = new Map();

function keptWeights(head) {
    const weights = kept.get(head) ?? decodeCompact(head);
    kept.delete(head);
    kept.set(head, weights);
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    return weights;
}

// The weights of one row, without decoding the others.
export function rowOf(head, i) {
    const from = i * head.columns;
    if (!head.compact || kept.has(head)) return head.weights.subarray(from, from + head.columns);
    const row = new Float32Array(head.columns);
    decodeCompactRow(head, i, row);
    return row;
}

// The largest error of a weight of row i by rounding; 0: it is exact.
export function weightError(head, i, weight) {
    if (!head.compact) return 0;
    const most = compactScale(head, i);
    return Math.sqrt(weight * most) / LEVELS + most / 6.7e7;
}

// ---------------------------------------------------------------- heads -----

// The small picture of a head: {rows, columns, values, share(value)}. Values are weights; share()
// gives the strength of the colour. Long texts come with a picture whose values are the largest
// weights of each part.
const PICTURE_SIDE = 64;

function makePicture(head, text) {
    if (!text)
        return { rows: head.rows, columns: head.columns, values: head.weights, share: (w) => w };
    const values = Float32Array.from(text, (letter) => (VALUES[letter.charCodeAt(0)] / 63) ** 2);
    return {
        rows: Math.min(head.rows, PICTURE_SIDE),
        columns: Math.min(head.columns, PICTURE_SIDE),
        values,
        share: Math.sqrt,
    };
}

// Special words, such as the end mark, in other brackets than HTML tags have.
export function shownWord(word) {
    return word.replace(/^<(begin|end|unknown)>$/, "\u2039$1\u203a");
}

// How many words the tokens of a side make.
function wordCount(tokens, continues) {
    return tokens.filter((_, n) => n === 0 || !continues?.[n]).length;
}

// The rows and columns of a head with its tokens joined to words: measures and roles are of these.
function wordsOfKind(sentence, kind) {
    const count = (side) => wordCount(sentence[side], sentence[`${side}_continues`]);
    return {
        rows: count(kind.name === "encoder" ? "source" : "target"),
        columns: count(kind.name === "decoder" ? "target" : "source"),
    };
}

// A row of decoder or cross-attention is labelled by the word it has read and the one it says.
function rowLabels(sentence, kind) {
    if (kind.name === "encoder") return sentence.source;
    if (!sentence.expected) return sentence.target;
    return sentence.target.map((word, i) => `${word} \u25b8 ${sentence.expected[i]}`);
}

function makeHead(sentence, kind, arrays, map, known) {
    const { rows, columns, width } = kind;
    const head = {
        sentence: sentence.index,
        kind: kind.name,
        layer: Math.floor(map / kind.heads) + 1,
        head: (map % kind.heads) + 1,
        rows,
        columns,
        words: known.words,
        width,
        causal: kind.causal,
        compact: kind.compact,
        text: kind.weights[map],
        large: rows > 2 * PICTURE_SIDE || columns > 2 * PICTURE_SIDE,
        rowWords: kind.name === "encoder" ? sentence.source : sentence.target,
        rowLabels: known.labels,
        saidWords: kind.name === "encoder" ? null : (sentence.expected ?? null),
        columnWords: kind.name === "decoder" ? sentence.target : sentence.source,
        columnMarks: (kind.name === "decoder" ? sentence.target_marks : sentence.source_marks) ?? [],
        patches: known.patches,
        lossUnit: known.lossUnit,
        scoresDiffer: kind.scores_differ ?? false,
        loss: kind.losses ? arrays.losses[map] : null,
        uniformLoss: kind.losses ? arrays.uniform_losses[map] : null,
        changed: (kind.changed ?? []).filter((change) => change.map === map),
        measures: Object.fromEntries(
            Object.entries(kind.measures).map(([name, values]) => [name, values[map]]),
        ),
        roleRecord: kind.roles[map],
        study: known.study?.[map],
        ablation: known.ablation?.[map],
    };
    if (kind.word_losses)
        lazy(head, "wordLosses", () => {
            const count = sentence.target.length;
            return arrays.word_losses.subarray(map * count, (map + 1) * count);
        });
    if (kind.compact) Object.defineProperty(head, "weights", { get: () => keptWeights(head) });
    else lazy(head, "weights", () => decodeFloats(kind.weights[map]));
    lazy(head, "picture", () => makePicture(head, kind.pictures?.[map]));
    if (!kind.q) return head;
    const part = (name, array, size) =>
        lazy(head, name, () => arrays[array].subarray(map * size, (map + 1) * size));
    part("q", "q", rows * width);
    part("k", "k", columns * width);
    part("v", "v", columns * width);
    if (kind.value_norms) part("valueNorms", "value_norms", columns);
    return head;
}

// What a head has besides its weights and vectors, none of which are decoded for it.
export function headFacts(head) {
    const names = Object.keys(head).filter(
        (name) => !["weights", "picture", "q", "k", "v", "valueNorms", "wordLosses", "text"].includes(name),
    );
    return Object.fromEntries(names.map((name) => [name, head[name]]));
}

// known: labels of rows, counts of words, study and ablation of the heads of the kind, in their
// order.
function makeHeads(page, sentence, kind) {
    const arrays = {};
    for (const name of ["q", "k", "v", "value_norms", "losses", "uniform_losses", "word_losses"])
        lazy(arrays, name, () => decodeFloats(kind[name]));
    const known = {
        labels: rowLabels(sentence, kind),
        words: wordsOfKind(sentence, kind),
        patches:
            sentence.picture && kind.name !== "decoder"
                ? { picture: sentence.picture, rows: kind.name === "encoder" }
                : null,
        study: page.study?.heads.filter((record) => record.kind === kind.name),
        ablation: page.ablation?.[kind.name],
        lossUnit: page.model?.predicts === false ? "1 \u2212 cosine" : "nats",
    };
    return Array.from({ length: kind.layers * kind.heads }, (_, map) =>
        makeHead(sentence, kind, arrays, map, known),
    );
}

// The bytes of a picture as [side][side][3].
function pixelsOf({ side, channels, bytes: text }) {
    const bytes = decodeBytes(text),
        size = side * side;
    const pixels = new Uint8Array(3 * size);
    for (let n = 0; n < size; n++)
        for (let c = 0; c < 3; c++) pixels[3 * n + c] = bytes[channels === 3 ? c * size + n : n];
    return pixels;
}

// The page with page.sentences[s].heads.encoder[n] and so on, and special words in other brackets.
// `known`: properties of the page that the text may lack.
export function readPage(text, known = {}) {
    const page = { ...known, ...JSON.parse(text) };
    if (page.format !== "mha-view-2") throw new Error(`unknown format ${page.format}`);
    page.sentences.forEach((sentence, index) => {
        sentence.index = index;
        for (const name of ["source", "target", "expected", "said"])
            if (sentence[name]) sentence[name] = sentence[name].map(shownWord);
        for (const kind of sentence.kinds)
            for (const change of kind.changed ?? []) change.word = shownWord(change.word);
        if (sentence.picture) lazy(sentence.picture, "pixels", () => pixelsOf(sentence.picture));
        if (sentence.vector) sentence.vector = decodeFloats(sentence.vector);
        sentence.heads = {};
        for (const kind of sentence.kinds)
            lazy(sentence.heads, kind.name, () => makeHeads(page, sentence, kind));
    });
    return page;
}

// The name of a head in the terminal: kind, layer and head, from 1.
export function headName(head) {
    return `${head.kind} ${head.layer}.${head.head}`;
}

// For names of files.
export function headFile(head) {
    return `mha-${head.kind}-${head.layer}.${head.head}`;
}

// May row i look at column j?
export function isVisible(head, i, j) {
    return !head.causal || j <= i;
}

// The shortest decimal that is this 32-bit float.
export function exactText(value) {
    for (let digits = 1; digits < 9; digits++) {
        const text = value.toPrecision(digits);
        if (Math.fround(Number(text)) === Math.fround(value)) return String(Number(text));
    }
    return String(Number(value.toPrecision(9)));
}

// A number with an error: only the digits that are certain.
export function roundedText(value, error) {
    if (error <= 0) return exactText(value);
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(error))));
    return value.toFixed(digits);
}
