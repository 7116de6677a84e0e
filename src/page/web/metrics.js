// SPDX-License-Identifier: MIT
// Numbers that the page computes from weights: distances, rollout, patterns, and the steps of one
// weight. The measures and roles of single heads come with the data. Rows of weights sum to 1; i is
// a row, j a column. Rows that see one column only have no choice and are left out of means.
import { isVisible, rowOf, seenColumns } from "./data.js";

// For many numbers, where Math.max(...values) would have too many arguments.
export function largestOf(values, least = 0) {
    let most = least;
    for (let n = 0; n < values.length; n++) if (values[n] > most) most = values[n];
    return most;
}

// In nats.
export function rowEntropy(row) {
    return row.reduce((sum, a) => (a > 0 ? sum - a * Math.log(a) : sum), 0);
}

// The places of the largest values, in their order.
export function largestPlaces(values, count) {
    const places = Array.from(values, (_, n) => n);
    if (places.length <= count) return places;
    return places
        .sort((a, b) => values[b] - values[a])
        .slice(0, count)
        .sort((a, b) => a - b);
}

// Jensen-Shannon divergence of two rows, in nats: 0 for equal rows, ln 2 for rows without a common
// column.
export function rowDivergence(a, b) {
    let sum = 0;
    for (let j = 0; j < a.length; j++) {
        const middle = (a[j] + b[j]) / 2;
        if (a[j] > 0) sum += (a[j] / 2) * Math.log(a[j] / middle);
        if (b[j] > 0) sum += (b[j] / 2) * Math.log(b[j] / middle);
    }
    return Math.max(0, sum);
}

export function rowVariation(a, b) {
    return a.reduce((sum, value, j) => sum + Math.abs(value - b[j]), 0) / 2;
}

// Heads of long texts are compared on every `step`-th row only.
const DIVERGENCE_CELLS = 1 << 13;

export function divergenceStep(head) {
    return Math.max(1, Math.floor((head.rows * head.columns) / DIVERGENCE_CELLS));
}

// Mean over the rows of two heads of one shape.
export function headDivergence(a, b) {
    let sum = 0,
        rows = 0;
    for (let i = 0; i < a.rows; i += divergenceStep(a)) {
        if (seenColumns(a, i) < 2) continue;
        sum += rowDivergence(rowOf(a, i), rowOf(b, i));
        rows++;
    }
    return rows > 0 ? sum / rows : 0;
}

// What can be shown instead of the weights.
export const MODES = {
    raw: "Weights",
    norm: "Weights \u00d7 value norm",
    hidden: "First word hidden",
};

// Columns that the mode "hidden" leaves out: begin and end marks, if there is a begin mark, else the
// first word, which then serves as one.
export function hiddenColumns(head) {
    if (!head.columnMarks?.[0]) return [0];
    return Array.from(head.columnMarks.keys()).filter((j) => head.columnMarks[j]);
}

function weightOn(head, i, columns) {
    return columns.reduce((sum, j) => sum + head.weights[i * head.columns + j], 0);
}

export function shownValues(head, mode) {
    const { rows, columns, weights } = head;
    const values = new Float64Array(rows * columns);
    const hidden = hiddenColumns(head);
    for (let i = 0; i < rows; i++) {
        const rest = 1 - weightOn(head, i, hidden);
        for (let j = 0; j < columns; j++) {
            const a = weights[i * columns + j];
            if (mode === "norm") values[i * columns + j] = a * head.valueNorms[j];
            else if (mode === "hidden")
                values[i * columns + j] = hidden.includes(j) || rest < 1e-6 ? 0 : a / rest;
            else values[i * columns + j] = a;
        }
    }
    return values;
}

// Mean of several heads of one shape.
export function meanWeights(heads) {
    const sum = new Float64Array(heads[0].rows * heads[0].columns);
    for (const { weights } of heads)
        for (let n = 0; n < sum.length; n++) sum[n] += weights[n] / heads.length;
    return sum;
}

function multiply(a, b, rows, inner, columns) {
    const result = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i++)
        for (let c = 0; c < inner; c++) {
            const factor = a[i * inner + c];
            if (factor === 0) continue;
            for (let j = 0; j < columns; j++)
                result[i * columns + j] += factor * b[c * columns + j];
        }
    return result;
}

// One layer of attention rollout (Abnar and Zuidema): half the mean of the heads, half identity.
export function layerMixing(heads) {
    const mixed = meanWeights(heads).map((a) => a / 2);
    for (let i = 0; i < heads[0].rows; i++) mixed[i * heads[0].columns + i] += 0.5;
    return mixed;
}

export function headsOfLayer(heads, layer) {
    return heads.filter((head) => head.layer === layer);
}

// The product of layers 1 to `layer`. Rows sum to 1.
export function rollout(heads, layer) {
    const size = heads[0].rows;
    let result = layerMixing(headsOfLayer(heads, 1));
    for (let l = 2; l <= layer; l++)
        result = multiply(layerMixing(headsOfLayer(heads, l)), result, size, size, size);
    return result;
}

// The mean of the heads of one cross-attention layer times the rollout of the whole encoder.
export function crossRollout(cross, encoder, layer) {
    const { rows, columns } = cross[0];
    const last = encoder[encoder.length - 1].layer;
    return multiply(
        meanWeights(headsOfLayer(cross, layer)),
        rollout(encoder, last),
        rows,
        columns,
        columns,
    );
}

// The picture of a head as `size` x `size` numbers; two such pictures are compared by their cosine.
export function pattern(head, size) {
    const { rows, columns, values } = head.picture;
    const result = new Float64Array(size * size);
    for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++)
            for (const [y, x, share] of spreadCell(rows, columns, i, j, size))
                result[y * size + x] += share * values[i * columns + j];
    return result;
}

// The squares of the small picture that a cell covers, with the share of each.
function spreadCell(rows, columns, i, j, size) {
    const parts = [];
    const [top, bottom] = [(i * size) / rows, ((i + 1) * size) / rows];
    const [left, right] = [(j * size) / columns, ((j + 1) * size) / columns];
    for (let y = Math.floor(top); y < bottom - 1e-9; y++)
        for (let x = Math.floor(left); x < right - 1e-9; x++) {
            const high = Math.min(bottom, y + 1) - Math.max(top, y);
            const wide = Math.min(right, x + 1) - Math.max(left, x);
            if (high > 0 && wide > 0) parts.push([y, x, high * wide]);
        }
    return parts;
}

export function cosine(a, b) {
    let ab = 0,
        aa = 0,
        bb = 0;
    for (let n = 0; n < a.length; n++) {
        ab += a[n] * b[n];
        aa += a[n] * a[n];
        bb += b[n] * b[n];
    }
    return aa > 0 && bb > 0 ? ab / Math.sqrt(aa * bb) : 0;
}

// Pairs of places of two lists of words: a longest common subsequence.
export function alignWords(a, b) {
    const best = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
    for (let i = a.length - 1; i >= 0; i--)
        for (let j = b.length - 1; j >= 0; j--)
            best[i][j] =
                a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    const pairs = [];
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
        if (a[i] === b[j]) pairs.push([i++, j++]);
        else if (best[i + 1][j] >= best[i][j + 1]) i++;
        else j++;
    }
    return pairs;
}

// One weight computed again from queries and keys, with all steps for row i.
export function takeApart(head, i, j) {
    const scale = 1 / Math.sqrt(head.width);
    const terms = Array.from({ length: head.width }, (_, c) => ({
        q: head.q[i * head.width + c],
        k: head.k[j * head.width + c],
        product: head.q[i * head.width + c] * head.k[j * head.width + c],
    }));
    const scores = Array.from({ length: head.columns }, (_, column) => {
        if (!isVisible(head, i, column)) return -Infinity;
        let sum = 0;
        for (let c = 0; c < head.width; c++)
            sum += head.q[i * head.width + c] * head.k[column * head.width + c];
        return sum * scale;
    });
    const largest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return {
        terms,
        scale,
        scores,
        largest,
        powers,
        total,
        dot: terms.reduce((sum, term) => sum + term.product, 0),
        weight: powers[j] / total,
        value: Array.from(head.v.subarray(j * head.width, (j + 1) * head.width)),
    };
}
