// SPDX-License-Identifier: MIT
// The steps of one attention: for each a title, a paragraph, a formula, and equations of matrices.
// A matrix is what matrix_figure.js draws, with explain(i, j) as compute_explain.js describes.
import { exactText } from "./data.js";
import { at, explainProduct, explainSum, fixed, given, place, signed } from "./compute_explain.js";
import { chosenHeads, headColor } from "./several.js";
import { projectionName, projectionOf, turnStep } from "./compute_turn.js";
import {
    absent,
    forwardStep,
    joinStep,
    outputOf,
    outputStep,
    residualNames,
    resultNames,
    sumStep,
} from "./compute_together.js";

// What a step needs to know: the computation c, and of the page the head, its words and sizes.
export function contextOf(app, c) {
    const { kind, layer, head: number } = app.state;
    const sentence = app.tokens.sentences[app.state.sentence];
    const heads = sentence.heads[kind].filter((head) => head.layer === layer);
    const head = heads[number - 1];
    const chosen = chosenHeads(app.state, heads.length);
    return {
        c,
        kind,
        layer,
        number,
        head,
        heads,
        chosen,
        D: head.width,
        E: c.width,
        H: heads.length,
        rowWords: head.rowLabels,
        columnWords: head.columnWords,
        cross: kind === "cross",
        changed: "",
    };
}

// --------------------------------------------------------- the stream -----

function inputStep(t) {
    const { c, E, rowWords } = t;
    const wide = (id, name, array, more) =>
        given(id, name, c.rows, E, at(array, E), { rowWords, ...more });
    const stream = wide("stream", "X", c.stream);
    if (!c.words)
        return {
            name: "input",
            title: "The rows that come in",
            text:
                t.cross || t.layer > 1 || t.kind === "decoder"
                    ? `Each word is a row of ${E} numbers: its embedding, its position, and what every part of the model before this one has added.`
                    : `Each token is a row of ${E} numbers, made of its embedding and its position.`,
            formula: `X: ${c.rows} rows of ${E}`,
            equations: [[stream]],
        };
    stream.explain = (i, j) =>
        explainSum(
            "X",
            place(stream, i, j),
            [
                ["word", c.words[i * E + j]],
                ["position", c.codes[i * E + j]],
            ],
            c.stream[i * E + j],
            { words: { row: i, column: j }, codes: { row: i, column: j } },
        );
    return {
        name: "input",
        title: "Words become rows of numbers",
        text:
            `Every word has a learnt vector of ${E} numbers, its embedding (times \u221a${E}). ` +
            "Attention does not know the order of its rows, so a code of the position is added: sines and cosines of different lengths.",
        formula: "X = embedding + position",
        equations: [
            [
                wide("words", "embedding", c.words),
                "+",
                wide("codes", "position", c.codes),
                "=",
                stream,
            ],
        ],
    };
}

// (x - mean) / deviation * weight + bias of a row; the root mean square takes no mean away.
function explainNorm(name, from, m, c, linear) {
    const rms = c.norm.kind === "rms";
    return (i, j) => {
        const row = Array.from({ length: c.width }, (_, n) => from[i * c.width + n]);
        const mean = rms ? 0 : row.reduce((sum, x) => sum + x, 0) / c.width;
        const deviation = Math.sqrt(
            row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / c.width + c.norm.eps,
        );
        const own = row[j];
        return {
            lines: [
                `${name}[${place(m, i, j)}] = ` +
                    (rms ? "x / root of the mean square" : "(x \u2212 mean) / deviation") +
                    (linear
                        ? " \u00b7 weight + bias"
                        : `, then a learnt weight${rms ? "" : " and bias"}`),
                `= ${rms ? fixed(own) : `(${fixed(own)} \u2212 ${fixed(mean)})`} / ${fixed(deviation)}` +
                    (linear
                        ? ` \u00b7 ${fixed(linear.weight[j])} ${signed(linear.bias[j])}`
                        : ` = ${fixed((own - mean) / deviation)}`),
            ],
            result: m.value(i, j),
            lit: { [m.from]: { row: i } },
        };
    };
}

function normStep(t) {
    const { c, E, rowWords } = t;
    const stream = given("stream", "X", c.rows, E, at(c.stream, E), { rowWords });
    const input = given("input", "norm(X)", c.rows, E, at(c.input, E), {
        rowWords,
        from: "stream",
    });
    input.explain = explainNorm("norm(X)", c.stream, input, c, c.linear.norm);
    const rms = c.norm.kind === "rms";
    return {
        name: "norm",
        title: "Every row is normed",
        text:
            (rms
                ? "Each row is scaled so that the mean of its squares is 1, then each of its columns gets a learnt factor."
                : "Each row is moved to mean 0 and scaled to deviation 1, then each of its columns gets a learnt factor and offset.") +
            " So no word is louder than another.",
        formula: rms
            ? "norm(x) = x / \u221amean(x\u00b2) \u00b7 weight"
            : "norm(x) = (x \u2212 mean) / deviation \u00b7 weight + bias",
        equations: [[stream, "\u2192", input]],
    };
}

// ---------------------------------------------------------- the head -----

// Columns of W that belong to head h, as a matrix [inputs][D]; keys and values may be shared by
// several heads.
function weightOf(t, which, title) {
    const linear = t.c.linear[which];
    if (!linear) return null;
    const groups = linear.outputs / t.D,
        group = Math.floor((t.number - 1) / (t.H / groups)),
        first = group * t.D;
    return {
        linear,
        first,
        matrix: given(
            `w${which}`,
            title,
            linear.inputs,
            t.D,
            (e, d) => linear.weight[(first + d) * linear.inputs + e],
        ),
    };
}

function projected(t, which, letter, array, input, rows, rowWords) {
    const w = weightOf(t, which, `W_${letter}`);
    const left =
        input &&
        given(
            `x${which}`,
            t.cross && which !== "q" ? "memory" : t.c.normFirst ? "norm(X)" : "X",
            rows,
            t.E,
            at(input, t.E),
            { rowWords },
        );
    const { id, name } = projectionName(t, which, letter);
    const products = (i, j) =>
        Array.from({ length: t.E }, (_, e) => [left.value(i, e), w.matrix.value(e, j), `${e + 1}`]);
    const bias = (j) => w.linear.bias[w.first + j];
    const value = projectionOf(t, which, array, w && left ? { products, bias } : null);
    if (!value) return [left, "\u00d7", w?.matrix, "=", absent(name, rows, t.D)].filter(Boolean);
    const result = given(id, name, rows, t.D, value, { rowWords, computed: id !== which });
    if (w && left)
        result.explain = (i, j) => ({
            ...explainProduct(
                name,
                place(result, i, j),
                products(i, j),
                bias(j),
                result.value(i, j),
                { [left.id]: { row: i }, [w.matrix.id]: { column: j } },
            ),
            computed: result.computed,
        });
    return [
        left,
        left && "\u00d7",
        w?.matrix ?? absent(`W_${letter}`, t.E, t.D),
        "=",
        result,
    ].filter(Boolean);
}

function projectStep(t) {
    const { c, head, number } = t;
    const keys = t.cross ? c.memory : c.input;
    return {
        name: "project",
        title: `Queries, keys and values of head ${number}`,
        text:
            `Head ${number} has three matrices of its own, ${t.E} \u00d7 ${t.D} each. They make of every row a query (what it looks for), ` +
            "a key (what it is found by) and a value (what it gives)." +
            (t.cross
                ? " The queries come from the translation, keys and values from what the encoder made of the source."
                : "") +
            (c.linear.q
                ? ""
                : " This page does not have the matrices; \u201cmha serve\u201d shows those of up to 262,144 numbers."),
        formula: `Q = X W_Q,  K = ${t.cross ? "M" : "X"} W_K,  V = ${t.cross ? "M" : "X"} W_V`,
        equations: [
            projected(t, "q", "Q", head.q, c.input, c.rows, t.rowWords),
            projected(t, "k", "K", head.k, keys, c.columns, t.columnWords),
            projected(t, "v", "V", head.v, keys, c.columns, t.columnWords),
        ],
    };
}

function splitStep(t) {
    const colors = Array.from({ length: t.H }, (_, n) => headColor(n + 1));
    const all = (which, letter, rows, rowWords) =>
        given(
            `all-${which}`,
            letter,
            rows,
            t.H * t.D,
            (i, j) => t.heads[Math.floor(j / t.D)][which][i * t.D + (j % t.D)],
            {
                rowWords,
                bands: t.D,
                colors,
                chosen: { from: (t.number - 1) * t.D, to: t.number * t.D },
            },
        );
    return {
        name: "split",
        title: `All ${t.H} heads side by side`,
        text: `The other heads do the same with matrices of their own: ${t.H} heads of width ${t.D} make ${t.H * t.D} columns. Splitting moves no number: head h simply owns its ${t.D} columns. The frame is head ${t.number}.`,
        formula: `${t.H} \u00d7 ${t.D} = ${t.H * t.D}`,
        equations: [
            [all("q", "Q", t.c.rows, t.rowWords)],
            [all("k", "K", t.c.columns, t.columnWords)],
            [all("v", "V", t.c.columns, t.columnWords)],
        ],
    };
}

function scoreAt(t, i, j) {
    let sum = 0;
    for (let d = 0; d < t.D; d++) sum += t.head.q[i * t.D + d] * t.head.k[j * t.D + d];
    return sum;
}

function queryMatrix(t) {
    return given("q", "Q", t.c.rows, t.D, at(t.head.q, t.D), { rowWords: t.rowWords });
}

function scoresStep(t) {
    const { head, D } = t;
    const q = queryMatrix(t);
    const k = given("kt", "K\u1d40", D, t.c.columns, (d, j) => head.k[j * D + d], {
        columnWords: t.columnWords,
    });
    const scores = given("scores", "Q K\u1d40", t.c.rows, t.c.columns, (i, j) => scoreAt(t, i, j), {
        rowWords: t.rowWords,
        columnWords: t.columnWords,
    });
    scores.explain = (i, j) => ({
        ...explainProduct(
            "score",
            `${t.rowWords[i]} \u2192 ${t.columnWords[j]}`,
            Array.from({ length: D }, (_, d) => [head.q[i * D + d], head.k[j * D + d], `${d + 1}`]),
            null,
            scores.value(i, j),
            { q: { row: i }, kt: { column: j } },
        ),
        computed: true,
    });
    return {
        name: "scores",
        title: "Scores: every query with every key",
        text: "The score of two words is the product of the one\u2019s query and the other\u2019s key: large if they point the same way.",
        formula: "S = Q K\u1d40",
        equations: [[q, "\u00d7", k, "=", scores]],
    };
}

function hiddenCell(t) {
    return (i, j) => t.head.causal && j > i;
}

function scaled(t, id = "scaled") {
    const root = Math.sqrt(t.D);
    return given(id, `S / \u221a${t.D}`, t.c.rows, t.c.columns, (i, j) => scoreAt(t, i, j) / root, {
        rowWords: t.rowWords,
        columnWords: t.columnWords,
        hidden: hiddenCell(t),
        computed: true,
    });
}

function scaleStep(t) {
    const scores = given("scores", "S", t.c.rows, t.c.columns, (i, j) => scoreAt(t, i, j), {
        rowWords: t.rowWords,
        columnWords: t.columnWords,
        computed: true,
    });
    const after = scaled(t);
    after.explain = (i, j) => ({
        lines: after.hidden(i, j)
            ? [
                  `${t.rowWords[i]} \u2192 ${t.columnWords[j]}: a later word, which this row must not see`,
                  "score becomes \u2212\u221e",
              ]
            : [`${fixed(scoreAt(t, i, j))} / \u221a${t.D} = ${fixed(after.value(i, j))}`],
        result: after.hidden(i, j) ? -Infinity : after.value(i, j),
        lit: { scores: { row: i, column: j } },
        computed: true,
    });
    return {
        name: "scale",
        title: t.head.causal ? "Scale and mask" : "Scale",
        text:
            `A sum of ${t.D} products grows with \u221a${t.D}; dividing by it keeps softmax from being all or nothing.` +
            (t.head.causal
                ? " Then the mask: a word must not see words that come after it, so their scores become \u2212\u221e (empty cells)."
                : " Here nothing is masked: every row may see every column."),
        formula: `S / \u221a${t.D}${t.head.causal ? ", later words \u2212\u221e" : ""}`,
        equations: [[scores, "\u2192", after]],
    };
}

function weightMatrix(t) {
    return given("weights", "A", t.c.rows, t.c.columns, at(t.head.weights, t.c.columns), {
        rowWords: t.rowWords,
        columnWords: t.columnWords,
        weights: true,
        hidden: hiddenCell(t),
    });
}

function softmaxStep(t) {
    const before = scaled(t),
        after = weightMatrix(t);
    after.explain = (i, j) => {
        if (after.hidden(i, j))
            return {
                lines: ["e^\u2212\u221e = 0: a masked word has no weight"],
                result: 0,
                lit: {},
            };
        const row = Array.from({ length: t.c.columns }, (_, n) => n).filter(
            (n) => !after.hidden(i, n),
        );
        const most = Math.max(...row.map((n) => before.value(i, n)));
        const total = row.reduce((sum, n) => sum + Math.exp(before.value(i, n) - most), 0);
        const own = before.value(i, j);
        const computed = Math.exp(own - most) / total;
        const differs = Math.abs(computed - after.value(i, j)) > 1e-3;
        return {
            lines: [
                `A[${t.rowWords[i]} \u2192 ${t.columnWords[j]}] = e^(score \u2212 largest) / sum of the row`,
                `= e^(${fixed(own, 3)} \u2212 ${fixed(most, 3)}) / ${fixed(total)} = ${computed.toFixed(6)}`,
                ...(differs
                    ? ["The model\u2019s scores have another part, or this head is changed."]
                    : []),
            ],
            result: after.value(i, j),
            lit: { scaled: { row: i } },
        };
    };
    return {
        name: "softmax",
        title: "Softmax: scores become weights",
        text: "e to the power of each score, divided by the sum of its row: every row is positive and sums to 1. This is the map that the other views show.",
        formula: "A = softmax(S / \u221ad)",
        equations: [[before, "\u2192", after]],
    };
}

function valuesStep(t) {
    const { head, D } = t;
    const a = weightMatrix(t);
    const v = given("v", "V", t.c.columns, D, at(head.v, D), { rowWords: t.columnWords });
    const own = outputOf(t, t.number);
    const out = given("out", `head ${t.number}`, t.c.rows, D, at(own, D), { rowWords: t.rowWords });
    out.explain = (i, j) =>
        explainProduct(
            `head ${t.number}`,
            place(out, i, j),
            Array.from({ length: t.c.columns }, (_, n) => [
                a.value(i, n),
                v.value(n, j),
                t.columnWords[n],
            ]),
            null,
            out.value(i, j),
            { weights: { row: i }, v: { column: j } },
        );
    return {
        name: "values",
        title: "Weights times values",
        text: `What head ${t.number} says of a word is the mean of the values, weighted by its row of A: ${D} numbers per word.`,
        formula: `head_${t.number} = A V`,
        equations: [[a, "\u00d7", v, "=", out]],
    };
}

// ------------------------------------------------------------ the list -----

function wholeStep(t) {
    return {
        name: "whole",
        title: `Multi-head attention: ${t.kind}, layer ${t.layer}`,
        text: `Every head computes for itself what it looks at and what it takes from there; their outputs are joined, and one matrix mixes them. Choose a box to see its numbers.`,
        formula: "MultiHead(X) = Concat(head_1, \u2026, head_h) W_O",
        equations: [],
        diagram: true,
    };
}

// Which steps this computation has, in their order.
export function stepsOf(t) {
    const { c } = t;
    return [
        wholeStep,
        c.stream && inputStep,
        c.normFirst && c.input && c.stream && normStep,
        projectStep,
        c.turn && turnStep,
        splitStep,
        scoresStep,
        scaleStep,
        softmaxStep,
        valuesStep,
        joinStep,
        outputStep,
        c.stream && c.added && c.joined && ((u) => sumStep(u, residualNames)),
        c.ff_input && c.ff_added && forwardStep,
        c.joined && c.ff_added && c.result && ((u) => sumStep(u, resultNames)),
    ].filter(Boolean);
}

export const STEP_WORDS = {
    whole: "The whole",
    input: "Words",
    norm: "Norm",
    project: "Q, K, V",
    turn: "Turn",
    split: "Heads",
    scores: "Scores",
    scale: "Scale, mask",
    softmax: "Softmax",
    values: "\u00d7 V",
    join: "Join",
    output: "W_O",
    residual: "Add",
    forward: "Feed-forward",
    result: "Add",
};

// A value as the page says it: exact.
export function resultText(value) {
    return Number.isFinite(value) ? exactText(value) : "\u2212\u221e";
}
