// SPDX-License-Identifier: MIT
// A page whose words are whole: tokens that continue a word are joined with it. The weight to a word
// is the sum over its pieces, the weight from a word the mean over its pieces, as in "mha heads".
import { headFacts, lazy } from "./data.js";

// The word of each token: [0, 1, 1, 2] for three words, the second of two pieces.
export function wordsOf(continues) {
    let word = -1;
    return continues.map((goesOn, n) => (goesOn && n > 0 ? word : ++word));
}

// Pieces without the signs of their tokenizer.
function pieceText(piece) {
    return piece.replace(/^##(?=.)/, "").replace(/^[\u2581\u0120](?=.)/, "");
}

function joinTexts(words, wordOf) {
    const joined = [];
    words.forEach((word, n) => {
        joined[wordOf[n]] = (joined[wordOf[n]] ?? "") + pieceText(word);
    });
    return joined;
}

// weights: [rows][columns] of tokens.
export function joinWeights(weights, rowWords, columnWords) {
    const columns = columnWords.length,
        width = columnWords[columns - 1] + 1;
    const counts = [];
    for (const word of rowWords) counts[word] = (counts[word] ?? 0) + 1;
    const joined = new Float32Array(counts.length * width);
    rowWords.forEach((row, i) => {
        for (let j = 0; j < columns; j++)
            joined[row * width + columnWords[j]] += weights[i * columns + j] / counts[row];
    });
    return joined;
}

function joinHead(head, words, sentence) {
    const side = head.kind === "decoder" ? "target" : "source",
        rowSide = head.kind === "encoder" ? "source" : "target";
    const rows = sentence[rowSide].length,
        columns = sentence[side].length;
    const joined = { ...headFacts(head), rows, columns };
    Object.assign(joined, {
        compact: false,
        large: false,
        q: null,
        valueNorms: null,
        rowWords: sentence[rowSide],
        rowLabels: sentence[rowSide],
        columnWords: sentence[side],
        columnMarks: sentence[`${side}_marks`],
    });
    lazy(joined, "weights", () => joinWeights(head.weights, words[rowSide], words[side]));
    if (head.saidWords) {
        const more = head.saidWords.map((_, i) => sentence.target_continues[i + 1] ?? 0);
        const said = wordsOf(more);
        joined.saidWords = joinTexts(head.saidWords, said);
        lazy(joined, "saidWeights", () => joinWeights(head.weights, said, words[side]));
    }
    lazy(joined, "picture", () => ({
        rows,
        columns,
        values: joined.weights,
        share: (weight) => weight,
    }));
    return joined;
}

function joinSentence(sentence) {
    const words = {};
    const joined = { ...sentence, expected: undefined, heads: {} };
    for (const side of ["source", "target"])
        if (sentence[side]) {
            const own = (words[side] = wordsOf(sentence[`${side}_continues`]));
            const marks = sentence[`${side}_marks`];
            joined[side] = joinTexts(sentence[side], own);
            joined[`${side}_marks`] = joined[side].map((_, n) => marks[own.indexOf(n)]);
        }
    joined.kinds = sentence.kinds.map((kind) => ({
        ...kind,
        rows: joined[kind.name === "encoder" ? "source" : "target"].length,
        columns: joined[kind.name === "decoder" ? "target" : "source"].length,
    }));
    for (const { name } of sentence.kinds)
        lazy(joined.heads, name, () =>
            sentence.heads[name].map((head) => joinHead(head, words, joined)),
        );
    return joined;
}

export function hasPieces(page) {
    return page.sentences.some(({ source_continues: a, target_continues: b }) =>
        [...(a ?? []), ...(b ?? [])].includes(1),
    );
}

export function joinPage(page) {
    return { ...page, sentences: page.sentences.map(joinSentence) };
}
