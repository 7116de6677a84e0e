// SPDX-License-Identifier: MIT
// One word of an experiment, taken apart: what each head adds to its logit directly, and what becomes
// of the word if the head is disabled. src/heads/word_shares.h has the formulas.
import { barsFigure, heatmapFigure } from "./figures.js";
import { figureView } from "./figure_view.js";
import { largestOf } from "./metrics.js";
import { el, NARROW } from "./dom.js";

// Layers as rows, heads as columns; list: [{kind, layer, head, value}].
function headsFigure(app, list, texts) {
    const layers = [...new Set(list.map(({ kind, layer }) => `${kind} ${layer}`))];
    const columns = Math.max(...list.map(({ head }) => head));
    const values = new Float64Array(layers.length * columns);
    for (const { kind, layer, head, value } of list)
        values[layers.indexOf(`${kind} ${layer}`) * columns + head - 1] = value;
    const beside = window.innerWidth > NARROW;
    return {
        layers,
        figure: heatmapFigure({
            ...texts,
            rows: layers.length,
            columns,
            rowWords: layers,
            columnWords: Array.from({ length: columns }, (_, n) => String(n + 1)),
            values,
            most: largestOf(values.map(Math.abs), 0.01),
            diverging: true,
            selected: -1,
            visible: () => true,
            room: { width: beside ? app.width() / 2 - 40 : app.width(), height: 420 },
        }),
    };
}

// Choosing a cell shows the head.
function headsView(app, id, list, texts) {
    const { layers, figure } = headsFigure(app, list, texts);
    return figureView(figure, {
        id,
        hint: "Click, or Enter, shows the head.",
        onchoose: (i, j) => {
            const [kind, layer] = layers[i].split(" ");
            app.set({ view: "head", kind, layer: Number(layer), head: j + 1 });
        },
    }).element;
}

function sharesPart(app, shares) {
    const heads = shares.heads.map(({ share, ...head }) => ({ ...head, value: share }));
    const sum = heads.reduce((total, { value }) => total + value, 0);
    const others = shares.others.filter(({ share }) => Math.abs(share) >= 5e-4);
    const words = others.map(({ name, layer }) => (layer ? `${name} ${layer}` : name));
    const apart = Math.abs(shares.logit - shares.sum);
    return [
        headsView(app, "shares", heads, {
            name: "mha-shares",
            title: `What each head adds to the logit of \u201c${shares.word}\u201d`,
            summary:
                `Direct contributions: they and the others beside them sum to the logit, ` +
                `${shares.logit.toFixed(3)} above the mean of all words; the heads to ` +
                `${sum.toFixed(3)}. The deviations of norms are held.` +
                (apart > 1e-3 ? ` The model then caps its logits, here by ${apart.toFixed(3)}.` : ""),
        }),
        figureView(
            barsFigure({
                name: "mha-other-shares",
                title: "What else adds to it",
                summary: "Shares below 0.0005 are left out.",
                words: ["all heads", ...words],
                values: [sum, ...others.map(({ share }) => share)],
                most: Math.max(
                    1e-9,
                    Math.abs(sum),
                    ...others.map(({ share }) => Math.abs(share)),
                ),
                signed: true,
                room: { width: Math.min(480, app.width()) },
            }),
            { id: "other-shares" },
        ).element,
    ];
}

// From the page itself: it measured each head on the same words, if none is disabled already.
function effectOnWord(app, probe, row) {
    const [sentence] = app.tokens.sentences;
    const same = probe.rows.every(
        ({ word }, n) => word === undefined || word === sentence.expected[n],
    );
    const all = Object.values(sentence.heads).flat();
    if (!same || app.live.closed !== "" || all[0].loss === null) return null;
    return headsView(
        app,
        "word-effect",
        all.map((head) => ({
            kind: head.kind,
            layer: head.layer,
            head: head.head,
            value: head.wordLosses[row] === 0 ? 0 : -head.wordLosses[row],
        })),
        {
            name: "mha-word-effect",
            title: `\u201c${probe.rows[row].word}\u201d without each head`,
            summary:
                "\u0394 ln p when only this head is disabled, measured in the unchanged model: with what " +
                "all later layers make of it, so it need not have the sign of the direct share.",
        },
    );
}

// The likeliest words of the row, one of which is taken apart.
function wordChoice(app, row, shares) {
    const words = [{ word: row.word, number: row.number }, ...row.likely_after].filter(
        ({ word, number }, n, all) =>
            word !== undefined && all.findIndex((other) => other.number === number) === n,
    );
    return el(
        "div",
        { class: "chips", role: "group", "aria-label": "The word that is taken apart" },
        words.map(({ word, number }) =>
            el(
                "button",
                {
                    type: "button",
                    id: `word-${number}`,
                    class: "plain-chip",
                    "aria-pressed": String(number === shares?.number),
                    onclick: () => app.set({ word: number === row.number ? -1 : number }),
                },
                word,
            ),
        ),
    );
}

export function wordPart(app, probe) {
    const row = probe.rows?.[app.state.said];
    if (!row || row.word === undefined) return null;
    const { shares, no_shares: reason } = probe;
    const ready = shares?.row === app.state.said;
    return el(
        "section",
        { id: "study-word", "aria-labelledby": "study-word-title" },
        el("h2", { id: "study-word-title" }, `\u201c${row.word}\u201d, taken apart`),
        wordChoice(app, row, ready ? shares : null),
        reason ? el("p", { class: "hint", id: "no-shares" }, reason) : null,
        el(
            "div",
            { class: "pair" },
            ready ? sharesPart(app, shares) : null,
            effectOnWord(app, probe, app.state.said),
        ),
    );
}
