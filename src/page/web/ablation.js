// SPDX-License-Identifier: MIT
// The part of a head's page that shows what "mha ablate" measured over a corpus: loss and accuracy
// without the head, beside the other heads of its layer.
import { headFile, headName } from "./data.js";
import { headsOfLayer } from "./metrics.js";
import { barsFigure } from "./figures.js";
import { figureView } from "./figure_view.js";
import { el } from "./dom.js";

const HOW = {
    zero: "Disabled",
    mean: "Replaced by its mean",
    uniform: "Made to look at all words equally",
};

function percent(share) {
    return `${(100 * share).toFixed(2)} %`;
}

// All heads of the layer, with intervals; the chosen one is marked.
function layerFigure(app, head) {
    const heads = headsOfLayer(app.sentence().heads[head.kind], head.layer);
    const damages = heads.map(({ ablation }) => ablation);
    const sure = damages.every(({ low }) => low !== null);
    const ends = damages.flatMap(({ delta, low, high }) => (sure ? [low, high] : [delta]));
    const most = Math.max(1e-9, ...ends.map(Math.abs));
    return barsFigure({
        name: `${headFile(head)}-ablation`,
        title: `Loss + over the corpus, ${head.kind} ${head.layer}`,
        summary:
            "Nats per word that are lost without each head of the layer" +
            (sure ? ", with 95 % intervals." : "; one sentence has no intervals."),
        words: heads.map(headName),
        values: damages.map(({ delta }) => delta),
        intervals: sure ? damages.map(({ low, high }) => [low, high]) : null,
        most,
        signed: ends.some((end) => end < 0),
        marks: [heads.indexOf(head)],
        digits: Math.max(0, 2 - Math.floor(Math.log10(most))),
        room: { width: 360 },
    });
}

function intervalText({ low, high }) {
    if (low === null) return "";
    const harmless = low <= 0 && high >= 0;
    return (
        `, 95 % ${low.toPrecision(3)} to ${high.toPrecision(3)}` +
        (harmless ? ": no measurable effect" : "")
    );
}

export function ablationPart(app, head) {
    const { ablation: corpus } = app.page,
        own = head.ablation;
    if (!own) return null;
    return el(
        "div",
        { id: "ablation" },
        el("h4", {}, `${HOW[corpus.mode] ?? corpus.mode}, over ${corpus.sentences} sentences`),
        el(
            "p",
            {},
            el(
                "b",
                {},
                `loss ${own.delta < 0 ? "\u2212" : "+"}${Math.abs(own.delta).toPrecision(3)}`,
            ),
            ` nats per word${intervalText(own)}`,
        ),
        el(
            "p",
            { class: "hint" },
            `words right ${percent(own.words_right)} (${percent(corpus.words_right)} with it), ` +
                `sentences exact ${percent(own.exact)} (${percent(corpus.exact)}); ` +
                `${corpus.split} split, ${corpus.model.split("/").at(-1)}`,
        ),
        figureView(layerFigure(app, head), { id: "layer" }).element,
    );
}
