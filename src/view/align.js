// SPDX-License-Identifier: MIT
// Cross-attention as alignment: ribbons from French to English words, and how often each head is
// right where the grammar knows.
import { headName } from "./data.js";
import { alignmentError, headsOfLayer, meanWeights } from "./metrics.js";
import { ribbonsFigure } from "./figures.js";
import { figureView } from "./figure_view.js";
import { chooser, el, picker, tableElement } from "./dom.js";

// Rows of the expected words. A word is said by the row before the one that reads it.
function alignmentMatrix(app, heads, title) {
    const sentence = app.sentence(),
        { columns } = heads[0];
    const shift = app.state.reads ? 1 : 0;
    const rowWords = sentence.expected.slice(0, -1);
    const weights = meanWeights(heads);
    const values = weights.slice(shift * columns, (shift + rowWords.length) * columns);
    return {
        name: `mha-alignment-${title.replaceAll(/[^A-Za-z0-9]+/g, "-")}`,
        title,
        summary:
            `English above, French below; wide ribbons are large weights. ` +
            (app.state.reads
                ? "Each French word with the row that has just read it."
                : "Each French word with the row that says it.") +
            (sentence.alignment && app.state.gold
                ? " Dashed: which words the grammar made it from."
                : ""),
        rows: rowWords.length,
        columns,
        rowWords,
        columnWords: sentence.source,
        values,
        most: Math.max(0.3, ...values),
        visible: () => true,
        selected: -1,
        marks:
            sentence.alignment && app.state.gold
                ? sentence.alignment.flatMap((sources, i) => sources.map((j) => [i, j]))
                : [],
        room: { width: app.width() },
    };
}

function errorTable(app, heads) {
    const { alignment } = app.sentence();
    if (!alignment) return null;
    const layers = [...new Set(heads.map((head) => head.layer))];
    const row = (layer) =>
        headsOfLayer(heads, layer).map((head) =>
            alignmentError(head, alignment, Boolean(app.state.reads)).toFixed(2),
        );
    const table = [
        ["", ...headsOfLayer(heads, 1).map((head) => `H${head.head}`)],
        ...layers.map((layer) => [`L${layer}`, ...row(layer)]),
    ];
    const best = Math.min(...table.slice(1).flatMap((line) => line.slice(1).map(Number)));
    const element = tableElement(table, "Alignment error rate of each head, 0 is best");
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
    const chosen = one ? ofLayer.filter((head) => head.head === app.state.head) : ofLayer;
    const numbers = (count) => Array.from({ length: count }, (_, n) => [n + 1, String(n + 1)]);
    const title = one
        ? `Alignment by cross layer ${layer}, head ${chosen[0].head}`
        : `Alignment by cross layer ${layer}, mean of ${chosen.length} heads`;
    return el(
        "div",
        {},
        el(
            "div",
            { class: "bar" },
            picker("align-layer", "Layer", numbers(layers), layer, (to) =>
                app.set({ kind: "cross", layer: Number(to) }),
            ),
            chooser(
                "mix",
                "Heads",
                { mean: "Mean of heads", head: "One head" },
                app.state.mix,
                (mix) => app.set({ kind: "cross", layer, mix }),
            ),
            one
                ? picker("align-head", "Head", numbers(ofLayer.length), app.state.head, (head) =>
                      app.set({ head: Number(head) }),
                  )
                : null,
            chooser(
                "reads",
                "Row of a word",
                { 0: "Says it", 1: "Has read it" },
                app.state.reads,
                (reads) => app.set({ reads: Number(reads) }),
            ),
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
        figureView(ribbonsFigure(alignmentMatrix(app, chosen, title)), {
            id: "main",
            hint: "Point at a word, or move with the arrow keys.",
        }).element,
        errorTable(app, heads) ??
            el(
                "p",
                { class: "hint" },
                `No alignment is known for this sentence: ${app.sentence().no_gold}.`,
            ),
    );
}
