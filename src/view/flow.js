// SPDX-License-Identifier: MIT
// Attention followed through the layers (rollout): half of each layer is the word itself, half what
// its heads look at on average.
import { crossRollout, headsOfLayer, layerMixing, rollout } from "./metrics.js";
import { flowFigure, heatmapFigure } from "./figures.js";
import { figureView } from "./figure_view.js";
import { el, picker } from "./dom.js";

// From the chosen word at the top downwards: how much of it comes from each word below a layer.
function flowParts(heads, layer, word) {
    const size = heads[0].rows;
    const shares = [];
    shares[layer] = Float64Array.from({ length: size }, (_, i) => (i === word ? 1 : 0));
    const steps = [];
    for (let l = layer; l > 0; l--) {
        const mixing = layerMixing(headsOfLayer(heads, l));
        shares[l - 1] = new Float64Array(size);
        for (let i = 0; i < size; i++)
            for (let j = 0; j < size; j++) {
                const share = shares[l][i] * mixing[i * size + j];
                shares[l - 1][j] += share;
                steps.push({ layer: l - 1, from: j, to: i, share });
            }
    }
    return { shares, steps };
}

function wordPicker(app, words, word) {
    return picker(
        "flow-word",
        "Word",
        words.map((text, n) => [n, text]),
        word,
        (n) => app.set({ row: Number(n) }),
    );
}

function rolloutMatrix(app, layer, word) {
    const { heads } = app.sentence(),
        own = heads[app.state.kind];
    const values =
        app.state.kind === "cross" ? crossRollout(own, heads.encoder, layer) : rollout(own, layer);
    return {
        name: `mha-rollout-${app.state.kind}-${layer}`,
        title: `Rollout, ${app.state.kind}, up to layer ${layer}`,
        summary:
            app.state.kind === "cross"
                ? "What each row takes from each English word, through the encoder. Rows sum to 1."
                : "How much of each row comes, by these layers, from each word. Rows sum to 1.",
        rows: own[0].rows,
        columns: own[0].columns,
        rowWords: own[0].rowLabels,
        columnWords: own[0].columnWords,
        values,
        most: Math.max(...values),
        visible: (i, j) => !own[0].causal || j <= i,
        selected: word,
        room: { width: app.width(), height: 520 },
    };
}

export function flowView(app) {
    const own = app.sentence().heads[app.state.kind];
    const layers = own[own.length - 1].layer,
        layer = app.state.layer;
    const word = app.state.row >= 0 ? app.state.row : Math.min(1, own[0].rows - 1);
    const map = figureView(heatmapFigure(rolloutMatrix(app, layer, word)), {
        id: "main",
        hint: "Choose a row to follow its word.",
        onchoose: (row) => app.set({ row }),
    });
    const flow =
        app.state.kind === "cross"
            ? null
            : figureView(
                  flowFigure({
                      name: `mha-flow-${app.state.kind}-${layer}`,
                      title: `Where \u201c${own[0].rowWords[word]}\u201d comes from`,
                      summary:
                          "Lines are as wide as what flows; the words at the bottom are as read.",
                      words: own[0].rowWords,
                      selected: word,
                      ...flowParts(own, layer, word),
                      room: { width: app.width() },
                  }),
                  { id: "flow" },
              );
    return el(
        "div",
        {},
        el(
            "div",
            { class: "bar" },
            picker(
                "flow-layer",
                "Up to layer",
                Array.from({ length: layers }, (_, n) => [n + 1, String(n + 1)]),
                layer,
                (to) => app.set({ layer: Number(to) }),
            ),
            wordPicker(app, own[0].rowLabels, word),
        ),
        flow?.element,
        map.element,
    );
}
