// SPDX-License-Identifier: MIT
// The Compare view: two heads, or one head on two sentences, side by side with their difference.
import { headFile, headName, isVisible, rowOf } from "./data.js";
import { alignWords, largestOf, largestPlaces, rowDivergence, rowVariation } from "./metrics.js";
import { barsFigure, heatmapFigure } from "./figures.js";
import { figureView } from "./figure_view.js";
import { headMatrix } from "./head.js";
import { el, NARROW, picker } from "./dom.js";

// The second head: that of the state, or the next one of the layer.
export function otherHead(app) {
    const [sentence, kind, layer, head] = app.state.other.split(".");
    const list = app.page.sentences[Number(sentence)]?.heads[kind];
    const found = list?.find((item) => item.layer === Number(layer) && item.head === Number(head));
    if (found) return found;
    const own = app.item().head;
    const heads = app.page.sentences[app.state.sentence].heads[own.kind];
    return (
        heads.find((item) => item.layer === own.layer && item.head === own.head + 1) ??
        heads.find((item) => item.layer === own.layer && item !== own) ??
        heads[0]
    );
}

function otherPicker(app, other) {
    const set = (patch) => {
        const next = {
            sentence: other.sentence,
            kind: other.kind,
            layer: other.layer,
            head: other.head,
            ...patch,
        };
        app.set({ other: [next.sentence, next.kind, next.layer, next.head].join(".") });
    };
    const heads = app.page.sentences[other.sentence].heads;
    const numbers = (name) =>
        [...new Set(heads[other.kind].map((head) => head[name]))].map((n) => [n, String(n)]);
    return el(
        "div",
        { class: "bar" },
        el("span", {}, "with"),
        app.page.sentences.length > 1
            ? picker(
                  "other-sentence",
                  app.sentence().picture ? "Picture" : "Sentence",
                  app.page.sentences.map((s) => [s.index, s.text]),
                  other.sentence,
                  (n) => set({ sentence: Number(n) }),
              )
            : null,
        picker(
            "other-kind",
            "Kind",
            Object.keys(heads).map((kind) => [kind, kind]),
            other.kind,
            (kind) => set({ kind, layer: 1, head: 1 }),
        ),
        picker("other-layer", "Layer", numbers("layer"), other.layer, (layer) => set({ layer })),
        picker("other-head", "Head", numbers("head"), other.head, (head) => set({ head })),
    );
}

// a - b on the words that both have, in the order of both.
function difference(app, a, b) {
    const rows = alignWords(a.rowWords, b.rowWords),
        columns = alignWords(a.columnWords, b.columnWords);
    const values = new Float64Array(rows.length * columns.length);
    const [first, second] = [a.weights, b.weights];
    rows.forEach(([i, k], r) =>
        columns.forEach(([j, l], c) => {
            values[r * columns.length + c] = first[i * a.columns + j] - second[k * b.columns + l];
        }),
    );
    const left = a.rows + b.rows + a.columns + b.columns - 2 * (rows.length + columns.length);
    return {
        name: `${headFile(a)}-less-${headFile(b).replace("mha-", "")}`,
        title: "Difference",
        summary:
            `First minus second: orange where the first looks more, blue where the second does.` +
            (left > 0 ? ` Words that only one of them has are left out.` : ""),
        rows: rows.length,
        columns: columns.length,
        rowWords: rows.map(([i]) => a.rowLabels[i]),
        columnWords: columns.map(([j]) => a.columnWords[j]),
        values,
        most: largestOf(values.map(Math.abs), 0.05),
        diverging: true,
        root: a.large || b.large,
        selected: -1,
        visible: (r, c) =>
            isVisible(a, rows[r][0], columns[c][0]) && isVisible(b, rows[r][1], columns[c][1]),
        room: {
            width: window.innerWidth > NARROW ? app.width() * 0.62 : app.width(),
            height: 480,
        },
    };
}

const ROWS_SHOWN = 40;

function rowDistances(a, b) {
    const values = a.rowWords.map((_, i) => rowDivergence(rowOf(a, i), rowOf(b, i)));
    const variation = a.rowWords.reduce(
        (sum, _, i) => sum + rowVariation(rowOf(a, i), rowOf(b, i)),
        0,
    );
    const shown = largestPlaces(values, ROWS_SHOWN);
    return barsFigure({
        name: "mha-row-distances",
        title: "Distance of each row",
        summary:
            `Jensen-Shannon divergence in nats; 0.693: no weight in common. Mean total variation ` +
            `${(variation / a.rows).toFixed(3)}.` +
            (shown.length < a.rows ? ` The ${shown.length} largest of ${a.rows} rows.` : ""),
        words: shown.map((i) => a.rowLabels[i]),
        values: shown.map((i) => values[i]),
        most: Math.LN2,
        room: { width: 360 },
    });
}

export function compareView(app) {
    const a = app.item().head,
        b = otherHead(app);
    const beside = window.innerWidth > NARROW;
    const half = {
        selected: -1,
        room: { width: beside ? app.width() / 2 - 30 : app.width(), height: 430 },
    };
    const named = (head) => ({
        ...headMatrix(app, head, half),
        title: `${headName(head)}: ${app.page.sentences[head.sentence].text}`,
    });
    const gap = difference(app, a, b);
    const same = a.rows === b.rows && a.columns === b.columns;
    return el(
        "div",
        {},
        otherPicker(app, b),
        el(
            "div",
            { class: "pair" },
            figureView(heatmapFigure(named(a)), { id: "first" }).element,
            figureView(heatmapFigure(named(b)), { id: "second" }).element,
        ),
        el(
            "div",
            { class: "split" },
            el(
                "div",
                { class: "grow" },
                gap.rows > 0 && gap.columns > 0
                    ? figureView(heatmapFigure(gap), { id: "difference" }).element
                    : el("p", {}, "These two have no words in common."),
            ),
            el(
                "aside",
                {},
                same
                    ? figureView(rowDistances(a, b), { id: "distances" }).element
                    : el("p", { class: "hint" }, "Rows of different lengths cannot be compared."),
            ),
        ),
    );
}
