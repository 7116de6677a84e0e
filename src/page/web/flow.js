// SPDX-License-Identifier: MIT
// Attention followed through the layers (rollout): half of each layer is the word itself, half what
// its heads look at on average. From one word as a flow, from all words as a map.
import {
    crossRollout,
    headsOfLayer,
    largestOf,
    largestPlaces,
    layerMixing,
    meanWeights,
    rollout,
} from "./metrics.js";
import { heatmapFigure } from "./figures.js";
import { flowFigure } from "./flow_figure.js";
import { figureView } from "./figure_view.js";
import { el, picker } from "./dom.js";

const WORDS_SHOWN = 18;
const PRODUCTS_MAX = 5e8; // of the map of all words

// One layer down: what each word below has of the shares above.
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

// Of many words those that have the largest shares somewhere below the top.
function shownPlaces(levels) {
    const most = Float64Array.from(levels[1].words, (_, n) =>
        Math.max(...levels.slice(1).map(({ shares }) => shares[n])),
    );
    return largestPlaces(most, WORDS_SHOWN);
}

function flowParts(app, layer, row) {
    const { levels, mixings } = allLevels(app, layer, row);
    const below = shownPlaces(levels),
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

function flowOf(app, layer, row) {
    const own = app.sentence().heads[app.state.kind],
        word = own[0].rowLabels[row];
    const { left, ...parts } = flowParts(app, layer, row);
    return flowFigure({
        name: `mha-flow-${app.state.kind}-${layer}-row${row + 1}`,
        title: `Where \u201c${word}\u201d comes from`,
        word,
        summary:
            "Bands are as wide as what flows, from the chosen word down to the words as read." +
            (left > 0.005
                ? ` Words that are left out have ${(100 * left).toFixed(0)} % of it.`
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
        summary:
            app.state.kind === "cross"
                ? "What each row takes from each word of the source, through the encoder. Rows sum to 1."
                : "How much of each row comes, by these layers, from each word. Rows sum to 1.",
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
            `The same for all ${rows} words at once would take too long; choose words above.`,
        );
    return figureView(heatmapFigure(rolloutMatrix(app, layer, word)), {
        id: "main",
        hint: "Choose a row to follow its word.",
        onchoose: (row) => app.set({ row }),
    }).element;
}

export function flowView(app) {
    const own = app.sentence().heads[app.state.kind];
    const layers = own.at(-1).layer,
        layer = app.state.layer;
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
                (to) => app.set({ layer: Number(to) }),
            ),
            picker(
                "flow-word",
                "Word",
                own[0].rowLabels.map((text, n) => [n, own[0].large ? `${n + 1} ${text}` : text]),
                word,
                (n) => app.set({ row: Number(n) }),
            ),
        ),
        figureView(flowOf(app, layer, word), {
            id: "flow",
            hint: "Point at a word, or move with the arrow keys, to see what goes through it.",
        }).element,
        rolloutMap(app, layer, word),
    );
}
