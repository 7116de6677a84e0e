// SPDX-License-Identifier: MIT
// What some models do with queries and keys after W_Q and W_K (src/heads/computation.h): they norm
// every head, turn pairs of its numbers by an angle that grows with the position, and give queries a
// factor. The page has queries and keys as the scores use them; those before are computed here.
import { at, fixed, given, place } from "./compute_explain.js";

// The matrix after W_Q or W_K; values, and vectors that nothing is done with, have their own name.
export function projectionName(t, which, letter) {
    const changed = t.c.turn && which !== "v";
    return changed
        ? { id: `${which}0`, name: `${letter}\u2032` }
        : { id: letter.toLowerCase(), name: letter };
}

// Number d of a head is one of a pair: {n, first, second}; null: it is not turned.
function pairOf({ angles, neighbours }, d) {
    const count = angles.length;
    if (d >= 2 * count) return null;
    const n = neighbours ? Math.floor(d / 2) : d % count;
    return neighbours
        ? { n, first: 2 * n, second: 2 * n + 1 }
        : { n, first: n, second: n + count };
}

function factorOf(turn, which) {
    return which === "q" ? turn.query_factor : 1;
}

// Number d of row i before it was turned and got its factor.
function turnedBack(t, which, array, i, d) {
    const { turn } = t.c;
    const factor = factorOf(turn, which);
    const pair = pairOf(turn, d);
    const own = (n) => array[i * t.D + n] / factor;
    if (!pair) return own(d);
    const angle = i * turn.angles[pair.n];
    const [a, b] = [own(pair.first), own(pair.second)];
    return d === pair.first
        ? a * Math.cos(angle) + b * Math.sin(angle)
        : b * Math.cos(angle) - a * Math.sin(angle);
}

// value(i, j) of what W_Q, W_K or W_V computes; null: the page cannot know it. `sum` has the products
// of a cell, null if the page does not have the matrix: a norm can only be computed forwards.
export function projectionOf(t, which, array, sum) {
    if (!t.c.turn || which === "v") return at(array, t.D);
    if (!t.c.turn.normed) return (i, d) => turnedBack(t, which, array, i, d);
    if (!sum) return null;
    return (i, j) => sum.products(i, j).reduce((total, [x, w]) => total + x * w, sum.bias(j));
}

// ------------------------------------------------------------ the step -----

function turnLines(t, which, array, name, i, d) {
    const { turn } = t.c;
    const factor = factorOf(turn, which);
    const pair = pairOf(turn, d);
    const back = (n) => turnedBack(t, which, array, i, n);
    const times = factor === 1 ? "" : ` \u00b7 ${fixed(factor)}`;
    const source = turn.normed ? "the normed numbers" : "the numbers";
    if (!pair) return [`${name} = ${fixed(back(d))}${times}${turn.angles.length ? "; this number is not turned" : ""}`];
    const angle = i * turn.angles[pair.n];
    const [a, b] = [back(pair.first), back(pair.second)].map((x) => fixed(x));
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)].map((x) => fixed(x));
    return [
        `${name}: ${source} ${pair.first + 1} and ${pair.second + 1} of position ${i} are turned by ` +
            `${i} \u00b7 ${turn.angles[pair.n].toPrecision(4)} = ${fixed(angle)}`,
        d === pair.first
            ? `= (${a} \u00b7 cos ${fixed(angle)} \u2212 ${b} \u00b7 sin ${fixed(angle)})${times} = ${a} \u00b7 ${cos} \u2212 ${b} \u00b7 ${sin}`
            : `= (${b} \u00b7 cos ${fixed(angle)} + ${a} \u00b7 sin ${fixed(angle)})${times} = ${b} \u00b7 ${cos} + ${a} \u00b7 ${sin}`,
    ];
}

function turned(t, which, letter, array, rows, rowWords) {
    const before = t.c.turn.normed
        ? null
        : given(`${which}0`, `${letter}\u2032`, rows, t.D, projectionOf(t, which, array, null), {
              rowWords,
              computed: true,
          });
    const after = given(which, letter, rows, t.D, at(array, t.D), { rowWords });
    after.explain = (i, d) => ({
        lines: turnLines(t, which, array, `${letter}[${place(after, i, d)}]`, i, d),
        result: after.value(i, d),
        lit: { [`${which}0`]: { row: i } },
    });
    return before ? [before, "\u2192", after] : [after];
}

function turnText(t) {
    const { normed, angles, query_factor: factor } = t.c.turn;
    const parts = [];
    if (normed)
        parts.push(
            "The query and the key of every word are normed: divided by the root of the mean of their squares, times learnt weights.",
        );
    if (angles.length > 0)
        parts.push(
            `The position comes in here (rotary positions): ${2 * angles.length} numbers of each query and key are taken as ${angles.length} pairs, ` +
                "and each pair is turned like a hand of a clock, by an angle that is the position times a speed of the pair\u2019s own. " +
                "The product of a query and a key then depends on how far apart the two words are, not on where they stand.",
        );
    if (factor !== 1)
        parts.push(
            `This model does not divide scores by \u221a${t.D}; so that the next steps are the same for all models, its queries have the factor ${fixed(factor)} here.`,
        );
    return parts.join(" ");
}

export function turnStep(t) {
    const { head, c } = t;
    const { angles, normed, query_factor: factor } = c.turn;
    return {
        name: "turn",
        title:
            angles.length > 0
                ? "Queries and keys are turned by their positions"
                : "Queries and keys are scaled",
        text: turnText(t),
        formula:
            (normed ? "q = norm(q\u2032);  " : "") +
            (angles.length > 0
                ? "(a, b) \u2192 (a cos p\u03c9 \u2212 b sin p\u03c9,  b cos p\u03c9 + a sin p\u03c9)"
                : `q = q\u2032${factor === 1 ? "" : ` \u00b7 ${fixed(factor)}`}`),
        equations: [
            turned(t, "q", "Q", head.q, c.rows, t.rowWords),
            turned(t, "k", "K", head.k, c.columns, t.columnWords),
        ],
    };
}
