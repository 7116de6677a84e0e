// SPDX-License-Identifier: MIT
// One cell in detail: the steps from query and key to the weight, and what the value adds to the
// output.
import { headFile, isVisible } from "./data.js";
import { takeApart } from "./metrics.js";
import { barsFigure } from "./figures.js";
import { figureView } from "./figure_view.js";
import { el, tableElement } from "./dom.js";

function step(number, title, ...content) {
    return el(
        "section",
        { class: "step" },
        el("h4", {}, el("b", { "aria-hidden": "true" }, number), title),
        ...content,
    );
}

function formula(...parts) {
    return el("p", { class: "formula" }, ...parts);
}

function termsFigure(head, apart, i, j, room) {
    return barsFigure({
        name: `${headFile(head)}-terms`,
        title: "q \u00b7 k, term by term",
        summary:
            `Products of the ${head.width} numbers of query \u201c${head.rowLabels[i]}\u201d and key ` +
            `\u201c${head.columnWords[j]}\u201d; their sum is ${apart.dot.toFixed(4)}.`,
        words: apart.terms.map((_, c) => String(c + 1)),
        values: apart.terms.map((term) => term.product),
        most: Math.max(...apart.terms.map((term) => Math.abs(term.product))),
        signed: true,
        room,
    });
}

function valueFigure(head, apart, j, room) {
    const added = apart.value.map((v) => v * apart.weight);
    return barsFigure({
        name: `${headFile(head)}-value`,
        title: "weight \u00d7 value",
        summary:
            `What \u201c${head.columnWords[j]}\u201d adds to the output, before W_O.` +
            (head.valueNorms
                ? ` Through W_O its length becomes ${(apart.weight * head.valueNorms[j]).toFixed(4)}.`
                : ""),
        words: added.map((_, c) => String(c + 1)),
        values: added,
        most: Math.max(1e-9, ...apart.value.map(Math.abs)),
        signed: true,
        room,
    });
}

function softmaxTable(head, apart, i) {
    const number = (value) => (Number.isFinite(value) ? value.toFixed(4) : "\u2212\u221e (masked)");
    return tableElement(
        [
            ["key", "score", "e^(score \u2212 largest)", "weight"],
            ...head.columnWords.map((word, c) => [
                word,
                number(apart.scores[c]),
                apart.powers[c].toFixed(4),
                (apart.powers[c] / apart.total).toFixed(4),
            ]),
        ],
        `Row of \u201c${head.rowLabels[i]}\u201d: scores, powers, weights`,
    );
}

// The scores of some models have another part than q . k: a position bias, as T5 has, or a cap.
const ROUNDING = 1e-3;

function differenceText(head, stored, weight) {
    const difference = Math.abs(stored - weight);
    return difference < ROUNDING && !head.scoresDiffer
        ? `The model computed ${stored.toFixed(6)}; the difference, ` +
              `${difference.toExponential(1)}, is rounding.`
        : `The model computed ${stored.toFixed(6)}: its scores have another part besides q \u00b7 k, ` +
              `such as a position bias or a window.`;
}

// Why the steps of a cell cannot be shown; null: they can.
function reasonAgainst(head, i, j) {
    if (!isVisible(head, i, j))
        return (
            "This cell is masked: a word sees only the words up to itself. The score becomes " +
            "\u2212\u221e, the weight 0."
        );
    if (head.q === null)
        return (
            "This page shows whole words: choose Tokens to see how the weight of one token to " +
            "another is computed."
        );
    if (!head.q)
        return (
            "This page has weights only: the file that it was made from has no queries, keys and " +
            "values from which a weight could be computed again."
        );
    return null;
}

// Fills `room` for row i and column j.
export function showCell(room, head, i, j) {
    if (i < 0 || j < 0) {
        const hint = head.q
            ? "Choose a cell with a click or with Enter to see here how its weight is computed."
            : "";
        room.replaceChildren(el("p", { class: "hint" }, hint));
        return;
    }
    const from = head.rowLabels[i],
        to = head.columnWords[j];
    const title = el("h3", {}, `How \u201c${from}\u201d looks at \u201c${to}\u201d`);
    const reason = reasonAgainst(head, i, j);
    if (reason) {
        room.replaceChildren(title, el("p", {}, reason));
        return;
    }
    const apart = takeApart(head, i, j);
    const stored = head.weights[i * head.columns + j];
    const view = document.getElementById("view"); // the room may not be on the page yet
    const space = { width: Math.min(380, view.clientWidth) };
    room.replaceChildren(
        title,
        el(
            "div",
            { class: "steps" },
            step(
                1,
                "Product",
                figureView(termsFigure(head, apart, i, j, space), { id: "terms" }).element,
            ),
            step(
                2,
                "Scale, mask, softmax",
                formula(
                    `${apart.dot.toFixed(4)} / \u221a${head.width} = `,
                    el("b", {}, apart.scores[j].toFixed(4)),
                ),
                formula(
                    `e^(${apart.scores[j].toFixed(3)} \u2212 ${apart.largest.toFixed(3)}) / ` +
                        `${apart.total.toFixed(4)} = `,
                    el("b", { id: "cell-weight" }, apart.weight.toFixed(6)),
                ),
                el(
                    "p",
                    { class: "hint" },
                    differenceText(head, stored, apart.weight),
                ),
                softmaxTable(head, apart, i),
            ),
            step(
                3,
                "What the value adds",
                figureView(valueFigure(head, apart, j, space), { id: "value" }).element,
            ),
        ),
    );
}
