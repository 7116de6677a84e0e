// SPDX-License-Identifier: MIT
// What can be said of a head in numbers. Weights are row-stochastic; i is a row, j a column. Rows
// that see one column only have no choice and count for nothing.
import { isVisible } from "./data.js";

function choosingRows(head) {
    const rows = Array.from({ length: head.rows }, (_, i) => i);
    return rows.filter((i) => (head.causal ? i > 0 : head.columns > 1));
}

function meanOver(list, value) {
    return list.length === 0 ? 0 : list.reduce((sum, item) => sum + value(item), 0) / list.length;
}

function weightAt(head, i, j) {
    return j < 0 || j >= head.columns ? 0 : head.weights[i * head.columns + j];
}

export function largestColumn(head, i) {
    let best = 0;
    for (let j = 1; j < head.columns; j++)
        if (weightAt(head, i, j) > weightAt(head, i, best)) best = j;
    return best;
}

// In nats.
export function rowEntropy(row) {
    return row.reduce((sum, a) => (a > 0 ? sum - a * Math.log(a) : sum), 0);
}

export function rowOf(head, i) {
    return head.weights.subarray(i * head.columns, (i + 1) * head.columns);
}

// Share of the mass on relative place r (Clark et al. divide by all rows), and share of rows whose
// largest weight is there, of those that have such a place (Voita et al.).
function offsetMass(head, rows, r) {
    return meanOver(rows, (i) => weightAt(head, i, i + r));
}

function offsetShare(head, rows, r) {
    const able = rows.filter(
        (i) => i + r >= 0 && i + r < head.columns && isVisible(head, i, i + r),
    );
    return meanOver(able, (i) => (largestColumn(head, i) === i + r ? 1 : 0));
}

// Sum over earlier columns with the same word, as a share of all mass.
function duplicateMass(head, rows) {
    if (head.kind === "cross") return 0;
    return meanOver(rows, (i) => {
        let sum = 0;
        for (let j = 0; j < i; j++)
            if (head.columnWords[j] === head.rowWords[i]) sum += weightAt(head, i, j);
        return sum;
    });
}

// Between the two places, over the mass on columns from `least` on; the first one attracts those
// that have nothing to look at.
function meanDistance(head, rows, least) {
    let sum = 0,
        mass = 0;
    for (const i of rows)
        for (let j = least; j < head.columns; j++) {
            sum += weightAt(head, i, j) * Math.abs(i - j);
            mass += weightAt(head, i, j);
        }
    return mass > 0 ? sum / mass : 0;
}

// Alignment error rate of the largest weights against the grammar. Row i says expected word i, or,
// where `reads` is set, has just read it. Ends count on neither side.
export function alignmentError(head, alignment, reads = false) {
    let found = 0,
        hits = 0,
        gold = 0;
    alignment.forEach((sources, i) => {
        const row = reads ? i + 1 : i;
        let best = -1;
        for (let j = 0; j < head.columns - 1; j++)
            if (best < 0 || weightAt(head, row, j) > weightAt(head, row, best)) best = j;
        found += best >= 0 ? 1 : 0;
        hits += sources.includes(best) ? 1 : 0;
        gold += sources.length;
    });
    return found + gold > 0 ? 1 - (2 * hits) / (found + gold) : 1;
}

// Share of words, of those that come from some, whose largest weight is on one of them.
function alignedShare(head, alignment) {
    if (head.kind !== "cross" || !alignment) return 0;
    const words = alignment.map((_, i) => i).filter((i) => alignment[i].length > 0);
    return meanOver(words, (i) => (alignment[i].includes(largestColumn(head, i)) ? 1 : 0));
}

export function measureHead(head, alignment) {
    const rows = choosingRows(head);
    const last = head.columns - 1;
    const choice = (i) => Math.log(head.causal ? i + 1 : head.columns);
    const entropy = meanOver(rows, (i) => rowEntropy(rowOf(head, i)));
    const most = meanOver(rows, choice);
    return {
        n: rows.length,
        entropy,
        entropyMost: most,
        spread: most > 0 ? entropy / most : 0,
        confidence: meanOver(rows, (i) => weightAt(head, i, largestColumn(head, i))),
        first: meanOver(rows, (i) => weightAt(head, i, 0)),
        end: head.kind === "decoder" ? 0 : meanOver(rows, (i) => weightAt(head, i, last)),
        prev: offsetMass(head, rows, -1),
        self: offsetMass(head, rows, 0),
        next: head.causal ? 0 : offsetMass(head, rows, 1),
        prevShare: offsetShare(head, rows, -1),
        selfShare: offsetShare(head, rows, 0),
        nextShare: head.causal ? 0 : offsetShare(head, rows, 1),
        same: duplicateMass(head, rows),
        aligned: alignedShare(head, alignment),
        error: head.kind === "cross" && alignment ? alignmentError(head, alignment) : null,
        distance: meanDistance(head, rows, 0),
        far: (3 * meanDistance(head, rows, 1)) / head.columns,
    };
}

// In the order in which they are tried: the first whose value reaches its threshold names the head.
const ROLES = [
    {
        name: "aligns",
        letter: "A",
        words: "looks at the word it translates",
        least: 0.6,
        value: (m) => m.aligned,
    },
    {
        name: "first",
        letter: "F",
        words: "rests on the first word",
        least: 0.6,
        value: (m) => m.first,
    },
    { name: "end", letter: "E", words: "rests on the end", least: 0.6, value: (m) => m.end },
    {
        name: "previous",
        letter: "P",
        words: "looks one word back",
        least: 0.5,
        value: (m) => (m.prevShare >= 0.9 ? Math.max(m.prev, 0.5) : m.prev),
        shown: (m) => m.prev,
    },
    {
        name: "next",
        letter: "N",
        words: "looks one word ahead",
        least: 0.5,
        value: (m) => (m.nextShare >= 0.9 ? Math.max(m.next, 0.5) : m.next),
        shown: (m) => m.next,
    },
    {
        name: "self",
        letter: "S",
        words: "looks at its own place",
        least: 0.5,
        value: (m) => m.self,
    },
    {
        name: "same",
        letter: "D",
        words: "looks at the same word before",
        least: 0.4,
        value: (m) => m.same,
    },
    {
        name: "broad",
        letter: "B",
        words: "looks at everything alike",
        least: 0.9,
        value: (m) => m.spread,
    },
    {
        name: "far",
        letter: "L",
        words: "looks far away: a third of the sentence or more",
        least: 1,
        value: (m) => m.far,
    },
];
const MIXED = { name: "mixed", letter: "M", words: "has no simple rule", least: 1 };

export const ROLE_NAMES = [...ROLES.map((role) => role.name), MIXED.name];

// {role, rule, letter, words, score, over, runner}: `score` over how much, null without a role; the
// runner-up is what comes nearest to its threshold.
export function roleOf(metrics) {
    const scored = ROLES.map((role) => ({
        role: role.name,
        rule: role.name,
        letter: role.letter,
        words: role.words,
        score: (role.shown ?? role.value)(metrics),
        reach: role.value(metrics) / role.least,
    }));
    const winner = scored.find((item) => item.reach >= 1);
    const [runner] = scored.filter((item) => item !== winner).sort((a, b) => b.reach - a.reach);
    const mixed = { role: MIXED.name, rule: MIXED.name, letter: MIXED.letter, words: MIXED.words };
    return { ...(winner ?? { ...mixed, score: null }), over: `${metrics.n} rows`, runner };
}

// Jensen-Shannon divergence of two rows, in nats: 0 for the same, ln 2 for nothing in common.
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

// Mean over the rows of two heads of one shape.
export function headDivergence(a, b) {
    return meanOver(choosingRows(a), (i) => rowDivergence(rowOf(a, i), rowOf(b, i)));
}

// What is shown instead of the weights: {values, most, note}.
export const MODES = {
    raw: "Weights",
    norm: "Weights \u00d7 value norm",
    hidden: "First word hidden",
};

export function shownValues(head, mode) {
    const { rows, columns, weights } = head;
    const values = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i++) {
        const rest = 1 - weights[i * columns];
        for (let j = 0; j < columns; j++) {
            const a = weights[i * columns + j];
            if (mode === "norm") values[i * columns + j] = a * head.valueNorms[j];
            else if (mode === "hidden")
                values[i * columns + j] = j === 0 || rest < 1e-6 ? 0 : a / rest;
            else values[i * columns + j] = a;
        }
    }
    return values;
}

// Mean of several heads of one shape.
export function meanWeights(heads) {
    const sum = new Float64Array(heads[0].weights.length);
    for (const head of heads)
        head.weights.forEach((a, n) => {
            sum[n] += a / heads.length;
        });
    return sum;
}

function multiply(a, b, rows, inner, columns) {
    const result = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i++)
        for (let c = 0; c < inner; c++)
            for (let j = 0; j < columns; j++)
                result[i * columns + j] += a[i * inner + c] * b[c * columns + j];
    return result;
}

// Half of what the heads of a layer look at on average, half the word itself (Abnar and Zuidema).
export function layerMixing(heads) {
    const mixed = meanWeights(heads).map((a) => a / 2);
    for (let i = 0; i < heads[0].rows; i++) mixed[i * heads[0].columns + i] += 0.5;
    return mixed;
}

export function headsOfLayer(heads, layer) {
    return heads.filter((head) => head.layer === layer);
}

// Layer by layer from the first to `layer`. Rows sum to 1.
export function rollout(heads, layer) {
    const size = heads[0].rows;
    let result = layerMixing(headsOfLayer(heads, 1));
    for (let l = 2; l <= layer; l++)
        result = multiply(layerMixing(headsOfLayer(heads, l)), result, size, size, size);
    return result;
}

// Cross-attention of one layer followed back through the whole encoder.
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

// A head's picture as `size` x `size` numbers, and how alike two such pictures are (cosine).
export function pattern(head, size) {
    const result = new Float64Array(size * size);
    for (let i = 0; i < head.rows; i++)
        for (let j = 0; j < head.columns; j++)
            for (const [y, x, share] of spreadCell(head, i, j, size))
                result[y * size + x] += share * weightAt(head, i, j);
    return result;
}

// The squares of the small picture that a cell covers, with the share of each.
function spreadCell(head, i, j, size) {
    const parts = [];
    const [top, bottom] = [(i * size) / head.rows, ((i + 1) * size) / head.rows];
    const [left, right] = [(j * size) / head.columns, ((j + 1) * size) / head.columns];
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

// Pairs of places of two lists of words: a longest common part in the order of both.
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

// One weight computed again from queries and keys: every step of the way for row i.
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
