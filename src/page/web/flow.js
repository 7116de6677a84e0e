// SPDX-License-Identifier: MIT
// The Flow view: attention rollout (Abnar and Zuidema). Every layer is taken as half the identity
// and half the mean of its heads' weights, and these matrices are multiplied down to the words.
// Values and feed-forward layers are left out, and cross-attention goes straight to the encoder,
// past the decoder's own attention. One word is drawn as bands, all words as a map.
import { inUnits } from "./picture.js";
import {
    crossRollout,
    headsOfLayer,
    largestOf,
    largestPlaces,
    layerMixing,
    meanWeights,
    rollout,
} from "./metrics.js";
import { heatmapFigure, lineWidth } from "./figures.js";
import { flowFigure } from "./flow_figure.js";
import { figureView } from "./figure_view.js";
import { el, picker } from "./dom.js";

const WORDS_SHOWN = 18;
const WORDS_LEAST = 3;
const LEVEL_NAMES = 84; // pixels
const PRODUCTS_MAX = 5e8; // multiplications for the map of all words

// One layer down: the share of each word below.
function stepDown(shares, mixing, columns) {
    const below = new Float64Array(columns);
    shares.forEach((share, i) => {
        if (share > 0)
            for (let j = 0; j < columns; j++) below[j] += share * mixing[i * columns + j];
    });
    return below;
}

// The levels from the chosen row down: {name, words, shares}, and the mixing between them.
function allLevels(app, layer, row) {
    const { heads } = app.sentence(),
        own = heads[app.state.kind];
    const one = Float64Array.from({ length: own[0].rows }, (_, i) => (i === row ? 1 : 0));
    const levels = [],
        mixings = [];
    const add = (name, words, shares) => levels.push({ name, words, shares });
    const follow = (stack, from) => {
        for (let l = from; l > 0; l--) {
            mixings.push(layerMixing(headsOfLayer(stack, l)));
            const shares = stepDown(levels.at(-1).shares, mixings.at(-1), stack[0].columns);
            const name = l === 1 ? "words" : `${stack[0].kind} ${l - 1}`;
            add(name, stack[0].columnWords, shares);
        }
    };
    add(`${app.state.kind} ${layer}`, own[0].rowLabels, one);
    if (app.state.kind !== "cross") {
        follow(own, layer);
    } else {
        mixings.push(meanWeights(headsOfLayer(own, layer)));
        const last = heads.encoder?.at(-1).layer ?? 0;
        const shares = stepDown(one, mixings[0], own[0].columns);
        add(last > 0 ? `encoder ${last}` : "words", own[0].columnWords, shares);
        if (last > 0) follow(heads.encoder, last);
    }
    return { levels, mixings };
}

// Of many words, those with the largest share in any level below the top; as many as fit.
function shownPlaces(levels, width) {
    const most = Float64Array.from(levels[1].words, (_, n) =>
        Math.max(...levels.slice(1).map(({ shares }) => shares[n])),
    );
    const wide = (places) =>
        LEVEL_NAMES +
        Math.max(...levels.slice(1).map(({ words }) => lineWidth(places.map((p) => words[p]))));
    let shown = largestPlaces(most, WORDS_SHOWN);
    while (shown.length > WORDS_LEAST && wide(shown) > width)
        shown = largestPlaces(most, shown.length - 1);
    return shown;
}

function flowParts(app, layer, row) {
    const { levels, mixings } = allLevels(app, layer, row);
    const below = shownPlaces(levels, app.width()),
        places = levels.map((_, n) => (n === 0 ? [row] : below));
    const shown = levels.map(({ name, words, shares }, n) => ({
        name,
        words: places[n].map((p) => words[p]),
        shares: places[n].map((p) => shares[p]),
    }));
    const steps = mixings.map((mixing, n) => {
        const columns = levels[n + 1].words.length;
        return places[n].flatMap((i, from) =>
            places[n + 1].map((j, to) => ({
                from,
                to,
                share: levels[n].shares[i] * mixing[i * columns + j],
            })),
        );
    });
    return {
        levels: shown,
        steps,
        above: app.state.kind === "cross" ? -1 : below.indexOf(row),
        left: 1 - shown.at(-1).shares.reduce((a, b) => a + b, 0),
    };
}

// What the shares are, and what they leave out.
function rolloutWords(app) {
    return app.state.kind === "cross"
        ? "Mean of the heads of the layer, then per encoder layer half the mean of its heads and " +
              "half the word itself; without the decoder\u2019s self-attention, values and " +
              "feed-forward layers."
        : "Per layer half the mean of the heads and half the word itself; without values and " +
              "feed-forward layers.";
}

function flowOf(app, layer, row) {
    const own = app.sentence().heads[app.state.kind],
        word = own[0].rowLabels[row];
    const { left, ...parts } = flowParts(app, layer, row);
    return flowFigure({
        name: `mha-flow-${app.state.kind}-${layer}-row${row + 1}`,
        title: `Attention followed down from \u201c${word}\u201d (rollout)`,
        word,
        summary:
            `${inUnits(app, rolloutWords(app))} Bands are as wide as their share of the product.` +
            (left > 0.005
                ? ` Words that are not shown have ${(100 * left).toFixed(0)} % of it.`
                : ""),
        ...parts,
        room: { width: app.width() },
    });
}

function rolloutMatrix(app, layer, word) {
    const { heads } = app.sentence(),
        own = heads[app.state.kind];
    const values =
        app.state.kind === "cross" && heads.encoder
            ? crossRollout(own, heads.encoder, layer)
            : app.state.kind === "cross"
              ? meanWeights(headsOfLayer(own, layer))
              : rollout(own, layer);
    return {
        name: `mha-rollout-${app.state.kind}-${layer}`,
        title: `Rollout, ${app.state.kind}, up to layer ${layer}`,
        summary: `${rolloutWords(app)} Rows sum to 1.`,
        rows: own[0].rows,
        columns: own[0].columns,
        rowWords: own[0].rowLabels,
        columnWords: own[0].columnWords,
        values,
        most: largestOf(values),
        root: own[0].large,
        visible: (i, j) => !own[0].causal || j <= i,
        selected: word,
        room: { width: app.width(), height: 520 },
    };
}

function rolloutMap(app, layer, word) {
    const [{ rows, columns }] = app.sentence().heads[app.state.kind];
    if (layer * rows * columns * columns > PRODUCTS_MAX)
        return el(
            "p",
            { class: "hint" },
            `A map of all ${rows} words would take too long to compute; choose words above.`,
        );
    return figureView(heatmapFigure(rolloutMatrix(app, layer, word)), {
        id: "main",
        hint: inUnits(app, "Choose a row to follow its word."),
        onchoose: (row) => app.set({ row }),
    }).element;
}

export function flowView(app) {
    const own = app.sentence().heads[app.state.kind];
    const layers = own.at(-1).layer,
        layer = app.state.from || layers;
    const word = app.state.row >= 0 ? app.state.row : Math.min(1, own[0].rows - 1);
    return el(
        "div",
        {},
        el(
            "div",
            { class: "bar" },
            picker(
                "flow-layer",
                "From layer",
                Array.from({ length: layers }, (_, n) => [n + 1, String(n + 1)]),
                layer,
                (to) => app.set({ from: Number(to) }),
            ),
            picker(
                "flow-word",
                app.sentence().picture ? "Row" : "Word",
                own[0].rowLabels.map((text, n) => [n, own[0].large ? `${n + 1} ${text}` : text]),
                word,
                (n) => app.set({ row: Number(n) }),
            ),
        ),
        figureView(flowOf(app, layer, word), {
            id: "flow",
            hint: inUnits(app, "Point at a word, or move with the arrow keys, to see its share."),
        }).element,
        rolloutMap(app, layer, word),
    );
}
