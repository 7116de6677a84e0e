// SPDX-License-Identifier: MIT
// The data of the page: JSON with base64 arrays of 32-bit floats, as objects that the views share.

const KIND_NAMES = {
    encoder: "Encoder",
    decoder: "Decoder",
    cross: "Cross",
};

// Little-endian, as is every machine that runs a browser.
function decodeFloats(text) {
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let n = 0; n < letters.length; n++) bytes[n] = letters.charCodeAt(n);
    return new Float32Array(bytes.buffer);
}

// A property that is made when it is first asked for: most of the data never is.
function lazy(object, name, make) {
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

// Words that are none, such as the end, in other brackets than tags have.
function shownWord(word) {
    return word.replace(/^<(begin|end|unknown)>$/, "\u2039$1\u203a");
}

// A row of decoder or cross-attention is labelled by the word it has read and the one it says.
function makeHead(sentence, kind, arrays, map, study) {
    const { rows, columns, width } = kind;
    const head = {
        sentence: sentence.index,
        kind: kind.name,
        layer: Math.floor(map / kind.heads) + 1,
        head: (map % kind.heads) + 1,
        rows,
        columns,
        width,
        causal: kind.name === "decoder",
        rowWords: kind.name === "encoder" ? sentence.source : sentence.target,
        rowLabels:
            kind.name === "encoder"
                ? sentence.source
                : sentence.target.map((word, i) => `${word} \u25b8 ${sentence.expected[i]}`),
        columnWords: kind.name === "decoder" ? sentence.target : sentence.source,
        loss: arrays.losses[map],
        uniformLoss: arrays.uniform_losses[map],
        changed: kind.changed.filter((change) => change.map === map),
        study,
    };
    const part = (name, array, size) =>
        lazy(head, name, () => arrays[array].subarray(map * size, (map + 1) * size));
    part("weights", "weights", rows * columns);
    part("q", "q", rows * width);
    part("k", "k", columns * width);
    part("v", "v", columns * width);
    part("valueNorms", "value_norms", columns);
    return head;
}

function makeHeads(sentence, kind, study) {
    const arrays = {};
    for (const name of ["weights", "q", "k", "v", "value_norms", "losses", "uniform_losses"])
        lazy(arrays, name, () => decodeFloats(kind[name]));
    return Array.from({ length: kind.layers * kind.heads }, (_, map) =>
        makeHead(sentence, kind, arrays, map, study?.[map]),
    );
}

// What is known of the heads of a kind over many sentences, in their order; undefined: nothing.
function studyOf(page, kind) {
    return page.study?.heads.filter((record) => record.kind === kind.name);
}

// page.sentences[s].heads.encoder[n] and so on; shown words instead of special ones.
export function readPage(text) {
    const page = JSON.parse(text);
    if (page.format !== "mha-view-1") throw new Error(`unknown format ${page.format}`);
    page.sentences.forEach((sentence, index) => {
        sentence.index = index;
        for (const name of ["source", "target", "expected", "said"])
            sentence[name] = sentence[name].map(shownWord);
        for (const kind of sentence.kinds)
            for (const change of kind.changed) change.word = shownWord(change.word);
        sentence.heads = {};
        for (const kind of sentence.kinds)
            lazy(sentence.heads, kind.name, () => makeHeads(sentence, kind, studyOf(page, kind)));
    });
    return page;
}

export function headName(head) {
    return `L${head.layer} H${head.head}`;
}

export function headTitle(head) {
    return `${KIND_NAMES[head.kind]}, layer ${head.layer}, head ${head.head}`;
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
