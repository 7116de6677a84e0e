// SPDX-License-Identifier: MIT
// The steps after the heads: their outputs are joined, W_O mixes them, the stream gets the sum, and
// the feed-forward follows.
import { at, explainProduct, explainSum, fixed, given, place, signed } from "./compute_explain.js";
import { largestSize } from "./matrix_figure.js";
import { headColor } from "./several.js";

// A matrix that the page does not have: only its shape.
export function absent(name, rows, columns) {
    return { absent: true, name, rows, columns };
}

// What a head has computed, [rows][width of a head].
export function outputOf(t, number) {
    const size = t.c.rows * t.D;
    return t.c.heads.subarray((number - 1) * size, number * size);
}

// ------------------------------------------------- the heads together -----

// The outputs of the chosen heads, joined.
function joinedMatrix(t) {
    const { chosen, D } = t;
    return given(
        "concat",
        chosen.length === t.H ? "Concat" : `Concat of ${chosen.length}`,
        t.c.rows,
        chosen.length * D,
        (i, j) => outputOf(t, chosen[Math.floor(j / D)])[i * D + (j % D)],
        { rowWords: t.rowWords, bands: D, colors: chosen.map(headColor) },
    );
}

// The outputs of the chosen heads one beside the other; most: the value of the strongest colour.
function stripsOf(t, most) {
    return t.chosen.flatMap((number, n) => {
        const strip = given(
            `strip-${number}`,
            `head ${number}`,
            t.c.rows,
            t.D,
            at(outputOf(t, number), t.D),
            {
                rowWords: n === 0 ? t.rowWords : undefined,
                colors: [headColor(number)],
                bands: t.D,
                strip: true,
                most,
            },
        );
        strip.explain = (i, j) => ({
            lines: [`head ${number}, ${t.rowWords[i]}, number ${j + 1} of ${t.D}`],
            result: strip.value(i, j),
            lit: { concat: { row: i, column: n * t.D + j } },
        });
        return n === 0 ? [strip] : ["|", strip];
    });
}

const HEIGHT_BESIDE = 150; // of W_O where strips are above it, so that a window has all of them

// The rows of W_O that read the chosen heads; null: the page does not have it.
function chosenRows(t, more = {}) {
    const { o } = t.c.linear;
    if (!o) return null;
    const column = (j) => (t.chosen[Math.floor(j / t.D)] - 1) * t.D + (j % t.D);
    return given(
        "wo",
        "W_O",
        t.chosen.length * t.D,
        o.outputs,
        (j, n) => o.weight[n * o.inputs + column(j)],
        more,
    );
}

// The joined rows times the rows of W_O that read them, computed here in double precision: what the
// chosen heads add to the output.
function productOf(t) {
    const values = Float64Array.from({ length: t.c.rows * t.E }, (_, place) =>
        outputParts(t, Math.floor(place / t.E), place % t.E).terms.reduce(
            (sum, [a, b]) => sum + a * b,
            0,
        ),
    );
    const product = given("product", "output", t.c.rows, t.E, at(values, t.E), {
        rowWords: t.rowWords,
        computed: true,
    });
    product.explain = (i, n) => ({
        ...explainProduct(
            "output",
            place(product, i, n),
            outputParts(t, i, n).terms,
            null,
            product.value(i, n),
            { concat: { row: i }, wo: { column: n } },
        ),
        computed: true,
    });
    return product;
}

export function joinStep(t) {
    const joined = joinedMatrix(t),
        most = largestSize(joined.rows, joined.columns, joined.value), // colours of all strips
        weight = chosenRows(t, { tall: HEIGHT_BESIDE }),
        count = t.chosen.length;
    joined.explain = (i, j) => ({
        lines: [
            `column ${j + 1} is number ${(j % t.D) + 1} of head ${t.chosen[Math.floor(j / t.D)]}, for ${t.rowWords[i]}`,
        ],
        result: joined.value(i, j),
        lit: { [`strip-${t.chosen[Math.floor(j / t.D)]}`]: { row: i, column: j % t.D } },
    });
    return {
        name: "join",
        title: weight
            ? "The heads\u2019 outputs, joined and multiplied with W_O"
            : "The heads\u2019 outputs, joined",
        text:
            `Each head has written ${t.D} numbers about every word. They are put side by side, which computes nothing: ${count} strips of ${t.D} make rows of ${count * t.D}.` +
            (weight
                ? ` W_O mixes them: each number of the output is a sum over the whole joined row. The next step adds ${count < t.H ? "the other heads and " : ""}the bias.`
                : ""),
        formula: `Concat(head_1, \u2026, head_h)${weight ? " W_O" : ""}`,
        equations: [
            stripsOf(t, most),
            weight ? ["=", joined, "\u00d7", weight, "=", productOf(t)] : ["=", joined],
        ],
    };
}

// What the chosen heads, the other heads and the bias add to the output.
function outputParts(t, i, n) {
    const { linear } = t.c,
        terms = [];
    let others = 0;
    for (let h = 1; h <= t.H; h++) {
        const own = outputOf(t, h),
            isChosen = t.chosen.includes(h);
        for (let d = 0; d < t.D; d++) {
            const a = own[i * t.D + d],
                b = linear.o.weight[n * linear.o.inputs + (h - 1) * t.D + d];
            if (isChosen) terms.push([a, b, `head ${h}`]);
            else others += a * b;
        }
    }
    return { terms, others, bias: linear.o.bias[n] };
}

// The output, if the model did not say it: computed here, in double precision.
function computedOutput(t) {
    return Float32Array.from({ length: t.c.rows * t.E }, (_, at) => {
        const { terms, others, bias } = outputParts(t, Math.floor(at / t.E), at % t.E);
        return terms.reduce((sum, [a, b]) => sum + a * b, bias + others);
    });
}

export function outputStep(t) {
    const { c, chosen } = t;
    const joined = joinedMatrix(t);
    const o = c.linear.o;
    const weight = chosenRows(t) ?? absent("W_O", chosen.length * t.D, t.E);
    const values = c.added ?? (o && computedOutput(t));
    const added =
        values && given("added", "output", c.rows, t.E, at(values, t.E), { rowWords: t.rowWords });
    if (added && o)
        added.explain = (i, n) => {
            const { terms, others, bias } = outputParts(t, i, n);
            const own = explainProduct(
                "output",
                place(added, i, n),
                terms,
                bias,
                added.value(i, n),
                { concat: { row: i }, wo: { column: n } },
            );
            if (chosen.length < t.H)
                own.lines.push(`and the other heads (${t.H - chosen.length}): ${signed(others)}`);
            return own;
        };
    return {
        name: "output",
        title: "One matrix mixes the heads: W_O",
        text:
            `W_O, ${t.H * t.D} \u00d7 ${t.E}, reads all heads of a word at once and brings the row back to width ${t.E}.` +
            (chosen.length < t.H
                ? ` Shown are the rows of W_O that read the ${chosen.length} chosen heads; the output has what all ${t.H} add.`
                : "") +
            (o ? "" : " This page does not have the matrix.") +
            (c.added || !o
                ? ""
                : " The output is computed by the page from the numbers beside it."),
        formula: "MultiHead = Concat(head_1, \u2026, head_h) W_O",
        equations: [[joined, "\u00d7", weight], ...(added ? [["=", added]] : [])],
    };
}

// ------------------------------------------------- after the attention -----

// x + added, and in models with the norm after a part its norm.
export function sumStep(t, names) {
    const { c, E, rowWords } = t;
    const from = c[names.from],
        added = c[names.added],
        to = c[names.to];
    const wide = (id, name, array) => given(id, name, c.rows, E, at(array, E), { rowWords });
    const sum = (i, j) => from[i * E + j] + added[i * E + j];
    const result = wide(names.to, c.normFirst ? names.result : `norm(${names.result})`, to);
    result.explain = (i, j) => {
        const parts = [
            [names.left, from[i * E + j]],
            [names.right, added[i * E + j]],
        ];
        const own = explainSum(names.result, place(result, i, j), parts, result.value(i, j), {
            [names.from]: { row: i, column: j },
            [names.added]: { row: i, column: j },
        });
        if (!c.normFirst) own.lines.push(`sum ${fixed(sum(i, j))}, then the row is normed`);
        return own;
    };
    return {
        name: names.name,
        title: names.title,
        text: names.text,
        formula: c.normFirst ? names.formula : `norm(${names.formula})`,
        equations: [
            [
                wide(names.from, names.left, from),
                "+",
                wide(names.added, names.right, added),
                c.normFirst ? "=" : "\u2192",
                result,
            ],
        ],
    };
}

export const residualNames = {
    name: "residual",
    title: "Added to the stream",
    text: "The output does not replace the word: it is added to the row that came in. Every part of a transformer only adds to this stream.",
    formula: "X + MultiHead(X)",
    from: "stream",
    added: "added",
    to: "joined",
    left: "X",
    right: "output",
    result: "X\u2032",
};
export const resultNames = {
    name: "result",
    title: "Added again: the rows that go on",
    text: "What the feed-forward computed is added to the stream. These rows are the input of the next layer.",
    formula: "X\u2032 + FF(X\u2032)",
    from: "joined",
    added: "ff_added",
    to: "result",
    left: "X\u2032",
    right: "FF",
    result: "X\u2033",
};

// A sum over the row of `left`; without the matrix only its size can be said.
function linearExplain(name, linear, left, result, positive) {
    const end = positive ? ["negative sums become 0 (ReLU)"] : [];
    return (i, n) => {
        const where = place(result, i, n),
            lit = { [left.id]: { row: i } };
        if (!linear)
            return {
                lines: [
                    `${name}[${where}] = \u03a3 of ${left.columns} products of the row, plus a bias`,
                    ...end,
                    "This page does not have the matrix; \u201cmha serve\u201d has it.",
                ],
                result: result.value(i, n),
                lit,
            };
        const terms = Array.from({ length: linear.inputs }, (_, e) => [
            left.value(i, e),
            linear.weight[n * linear.inputs + e],
            `${e + 1}`,
        ]);
        const own = explainProduct(name, where, terms, linear.bias[n], result.value(i, n), lit);
        own.lines.push(...end);
        return own;
    };
}

export function forwardStep(t) {
    const { c, E, rowWords } = t;
    const input = given(
        "ff_input",
        c.normFirst ? "norm(X\u2032)" : "X\u2032",
        c.rows,
        E,
        at(c.ff_input, E),
        { rowWords },
    );
    const added = given("ff_added", "FF", c.rows, E, at(c.ff_added, E), { rowWords });
    const inside =
        c.inside && given("inside", "inside", c.rows, c.inner, at(c.inside, c.inner), { rowWords });
    if (inside) {
        inside.explain = linearExplain("inside", c.linear.in, input, inside, true);
        added.explain = linearExplain("FF", c.linear.out, inside, added, false);
    }
    return {
        name: "forward",
        title: "Feed-forward: each word for itself",
        text:
            (inside
                ? `Two matrices and a function between them: ${E} numbers become ${c.inner}, negative ones become 0 (ReLU), and ${E} come out.`
                : "Two matrices and a function between them; this page does not have what is inside.") +
            " Here no word looks at another.",
        formula: inside
            ? "FF(x) = max(0, x W_in + b) W_out + b"
            : "FF(x) = f(x W_in + b) W_out + b",
        equations: inside
            ? [[input], ["\u2192", inside], ["\u2192", added]]
            : [[input], ["\u2192", added]],
    };
}
