// SPDX-License-Identifier: MIT
// The Alignment view: cross-attention as ribbons from French to English words, and the error rate
// of each head where the grammar knows the alignment.
import { headName } from "./data.js";
import { headsOfLayer, largestOf, meanWeights } from "./metrics.js";
import { arcsFigure, lineWidth, ribbonsFigure, strongest, windowOf } from "./figures.js";
import { chosenHeads, headSeries, headsChooser } from "./several.js";
import { figureView } from "./figure_view.js";
import { chooser, el, picker, tableElement } from "./dom.js";

// Rows of the expected words. A word is said by the row before the one that reads it.
function alignmentMatrix(app, heads, title, several) {
    const sentence = app.sentence(),
        { columns } = heads[0];
    const shift = sentence.expected && app.state.reads ? 1 : 0;
    const rowWords = sentence.expected ? sentence.expected.slice(0, -1) : sentence.target;
    const weights = meanWeights(heads);
    const part = (all) => all.slice(shift * columns, (shift + rowWords.length) * columns);
    const values = part(weights);
    return {
        name: `mha-alignment-${title.replaceAll(/[^A-Za-z0-9]+/g, "-")}`,
        title,
        summary:
            "Ribbons go from a word of the translation to words of the source; wide ones are large weights. " +
            (shift
                ? "Each word with the row that has just read it."
                : "Each word with the row that says it.") +
            (sentence.alignment && app.state.gold ? " Dashed: the alignment of the grammar." : ""),
        rows: rowWords.length,
        columns,
        rowWords,
        columnWords: sentence.source,
        values,
        series: several ? headSeries(heads, (head) => part(head.weights)) : undefined,
        most: several
            ? Math.max(...heads.map((head) => largestOf(part(head.weights), 0.3)))
            : largestOf(values, 0.3),
        visible: () => true,
        selected: -1,
        marks:
            sentence.alignment && app.state.gold
                ? sentence.alignment.flatMap((sources, i) => sources.map((j) => [i, j]))
                : [],
        room: { width: app.width() },
    };
}

const SIDE = 24; // words that fit into a line

// Of a long text, the part around the chosen row and its largest weight.
function shownPart(app, matrix) {
    if (matrix.rows <= 2 * SIDE && matrix.columns <= 2 * SIDE) return matrix;
    const row = Math.min(matrix.rows - 1, Math.max(0, app.state.row));
    const part = windowOf(matrix, row, strongest(matrix, row), SIDE);
    return {
        ...part,
        summary:
            `${matrix.summary} Words ${part.left + 1} to ${part.left + part.columns} above, ` +
            `${part.top + 1} to ${part.top + part.rows} below.`,
    };
}

function wordPicker(app, matrix) {
    if (matrix.rows <= 2 * SIDE && matrix.columns <= 2 * SIDE) return null;
    const words = matrix.rowWords.map((word, n) => [n, `${n + 1} ${word}`]);
    return picker("align-word", "Around", words, Math.max(0, app.state.row), (row) =>
        app.set({ row: Number(row) }),
    );
}

// Two lines of words with ribbons between them; in a narrow window two columns.
function alignmentFigure(part) {
    const width = Math.max(lineWidth(part.rowWords), lineWidth(part.columnWords));
    return (width > part.room.width ? arcsFigure : ribbonsFigure)(part);
}

function errorTable(app, heads) {
    const { alignment } = app.sentence();
    if (!alignment) return null;
    const layers = [...new Set(heads.map((head) => head.layer))];
    const measure = app.state.reads ? "aer_reads" : "aer_says";
    const row = (layer) =>
        headsOfLayer(heads, layer).map(({ measures }) => measures[measure].toFixed(2));
    const table = [
        ["", ...headsOfLayer(heads, 1).map((head) => `.${head.head}`)],
        ...layers.map((layer) => [`cross ${layer}`, ...row(layer)]),
    ];
    const best = Math.min(...table.slice(1).flatMap((line) => line.slice(1).map(Number)));
    const element = tableElement(table, "aer: alignment error rate of each head, 0 is best");
    element.querySelectorAll("tbody td").forEach((cell, n) => {
        if (Number(cell.textContent) === best) cell.classList.add("best");
        const head = heads[n];
        cell.replaceChildren(
            el(
                "button",
                {
                    type: "button",
                    class: "quiet",
                    id: `error-${n}`,
                    "aria-label": `${headName(head)}: ${cell.textContent}`,
                    onclick: () =>
                        app.set({ kind: "cross", layer: head.layer, head: head.head, mix: "head" }),
                },
                cell.textContent,
            ),
        );
    });
    return element;
}

export function alignView(app) {
    const heads = app.sentence().heads.cross;
    const layers = Math.max(...heads.map((head) => head.layer));
    const layer = app.state.kind === "cross" ? app.state.layer : layers;
    const ofLayer = headsOfLayer(heads, layer);
    const one = app.state.mix === "head";
    const several = app.state.mix === "several",
        numbersShown = chosenHeads(app.state, ofLayer.length);
    const chosen = one
        ? ofLayer.filter((head) => head.head === app.state.head)
        : several
          ? ofLayer.filter((head) => numbersShown.includes(head.head))
          : ofLayer;
    const numbers = (count) => Array.from({ length: count }, (_, n) => [n + 1, String(n + 1)]);
    const title = one
        ? `Alignment by ${headName(chosen[0])}`
        : several
          ? `Alignment by cross ${layer}, ${chosen.length} heads in their colours`
          : `Alignment by cross ${layer}, mean of ${chosen.length} heads`;
    const matrix = alignmentMatrix(app, chosen, title, several);
    return el(
        "div",
        {},
        el(
            "div",
            { class: "bar" },
            wordPicker(app, matrix),
            picker("align-layer", "Layer", numbers(layers), layer, (to) =>
                app.set({ kind: "cross", layer: Number(to) }),
            ),
            chooser(
                "mix",
                "Heads",
                { mean: "Mean of heads", several: "Heads in colours", head: "One head" },
                app.state.mix,
                (mix) => app.set({ kind: "cross", layer, mix }),
            ),
            one
                ? picker("align-head", "Head", numbers(ofLayer.length), app.state.head, (head) =>
                      app.set({ head: Number(head) }),
                  )
                : null,
            app.sentence().expected
                ? chooser(
                      "reads",
                      "Row of a word",
                      { 0: "Says it", 1: "Has read it" },
                      app.state.reads,
                      (reads) => app.set({ reads: Number(reads) }),
                  )
                : null,
            app.sentence().alignment
                ? chooser(
                      "gold",
                      "Grammar",
                      { 1: "Grammar\u2019s alignment" },
                      app.state.gold,
                      () => app.set({ gold: app.state.gold ? 0 : 1 }),
                  )
                : null,
        ),
        several ? headsChooser(app, ofLayer.length, numbersShown, "Heads") : null,
        figureView(alignmentFigure(shownPart(app, matrix)), {
            id: "main",
            hint: "Point at a word, or move with the arrow keys.",
        }).element,
        errorTable(app, heads) ??
            el(
                "p",
                { class: "hint" },
                app.sentence().no_gold
                    ? `No alignment is known for this sentence: ${app.sentence().no_gold}.`
                    : "No alignment is known for these words.",
            ),
    );
}
