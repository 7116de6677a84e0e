// SPDX-License-Identifier: MIT
// The view Picture, of models that say words of a picture or find things in it: the picture with what a
// word looks at, by every head of cross-attention, and with what looks at a patch. The words of a
// detector are its queries, with their boxes.
import { headName } from "./data.js";
import { el } from "./dom.js";
import { figureView } from "./figure_view.js";
import { mostWords, pictureFigure, pictureThumb, readShares, rowShares } from "./picture.js";

const BOX_LEAST = 0.5; // score from which a query has found something
const WORDS_NAMED = 3;

// The words of the rows: what each says or, of a detector, what each query finds. {row, text, found}
export function saidWords(sentence) {
    const { expected, target, boxes } = sentence;
    return (expected ?? target).map((text, row) => ({
        row,
        text: boxes ? `${text} ${(100 * boxes[row].score).toFixed(0)} %` : text,
        found: !boxes || boxes[row].score >= BOX_LEAST,
    }));
}

// The mean over heads of what a row gives to each patch; row -1: over all rows too.
export function meanShares(heads, row) {
    const all = heads.map((head) => (row < 0 ? readShares(head) : rowShares(head, row)));
    return Float64Array.from(all[0], (_, n) => all.reduce((sum, one) => sum + one[n], 0) / all.length);
}

// The words that look at a patch most: {row, text, share}.
export function lookers(heads, words, patch) {
    return words
        .map(({ row, text }) => ({ row, text, share: meanShares(heads, row)[patch] }))
        .sort((a, b) => b.share - a.share);
}

function drawBoxes(painter, size, boxes, row) {
    boxes.forEach((box, n) => {
        if (n !== row && box.score < BOX_LEAST) return;
        painter.frame(
            box.left * size,
            box.top * size,
            box.width * size,
            box.height * size,
            n === row ? "#ffb454" : "rgba(255,255,255,0.75)",
            n === row ? 3 : 1.5,
        );
    });
}

// The figure of one word, or of all of them.
function lookFigure(app, heads, words, row) {
    const sentence = app.sentence(),
        { picture } = heads[0].patches,
        { boxes } = sentence;
    const shares = meanShares(heads, row);
    const word = words[row]?.text;
    const figure = pictureFigure({
        name: "mha-picture",
        title: row < 0 ? "All words together" : `\u201c${word}\u201d`,
        summary:
            `Mean of ${heads.length} heads of cross-attention; most at ${mostWords(picture, shares)}.` +
            (boxes ? ` Boxes: queries that are at least ${100 * BOX_LEAST} % sure.` : ""),
        picture,
        sharesOf: () => shares,
        rowName: () => word ?? "all words",
        fixed: row,
        rows: false,
        room: app.width(),
        exact: (value) => value.toFixed(4),
    });
    const draw = (painter, look, cursor) => {
        figure.draw(painter, look, cursor);
        if (boxes) drawBoxes(painter, figure.width, boxes, row);
    };
    const describe = (i, j) => {
        const patch = i * picture.across + j;
        const names = lookers(heads, words, patch)
            .slice(0, WORDS_NAMED)
            .map(({ text, share }) => `${text} ${(100 * share).toFixed(1)} %`);
        return `${figure.describe(i, j)}; looked at most by ${names.join(", ")}`;
    };
    return { ...figure, draw, describe };
}

// ------------------------------------------------------------------- view -----

export function lookView(app) {
    const heads = app.sentence().heads.cross,
        { picture } = heads[0].patches;
    const words = saidWords(app.sentence());
    let shown = app.state.row;
    const canvases = heads.map(() => el("canvas", { class: "thumb", "aria-hidden": "true" }));
    const main = figureView(lookFigure(app, heads, words, shown), {
        id: "main",
        hint: "Point at a word, or at the picture, or move with the arrow keys.",
        onmove: (i, j) => mark(lookers(heads, words, i * picture.across + j)),
    });
    main.canvas.addEventListener("mouseleave", () => mark([]));
    main.canvas.addEventListener("blur", () => mark([]));

    // The strength of each word by what it gives to a patch.
    function mark(list) {
        const most = Math.max(1e-9, ...list.map(({ share }) => share));
        for (const { row } of words)
            buttons[row].style.setProperty(
                "--look",
                (100 * (list.find((one) => one.row === row)?.share ?? 0)) / most,
            );
    }
    function show(row) {
        shown = row;
        main.redraw(lookFigure(app, heads, words, row));
        heads.forEach((head, n) =>
            pictureThumb(canvases[n], picture, row < 0 ? readShares(head) : rowShares(head, row)),
        );
    }
    const buttons = words.map(({ row, text, found }) =>
        el(
            "button",
            {
                type: "button",
                id: `look-${row}`,
                class: found ? "look-word" : "look-word unsure",
                "aria-pressed": String(app.state.row === row),
                onmouseenter: () => show(row),
                onmouseleave: () => show(app.state.row),
                onfocus: () => show(row),
                onblur: () => show(app.state.row),
                onclick: () => app.set({ row: app.state.row === row ? -1 : row }),
            },
            text,
        ),
    );
    const wordBar = el(
        "div",
        { class: "look-words", role: "group", "aria-label": "Words", onkeydown: moveWord },
        buttons,
    );
    function moveWord(event) {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const at = buttons.indexOf(document.activeElement);
        if (!step || at < 0) return;
        buttons[(at + step + buttons.length) % buttons.length].focus();
        event.preventDefault();
        event.stopPropagation();
    }
    show(shown);
    return el(
        "div",
        {},
        el(
            "p",
            { class: "hint" },
            "Point at a word, or move to it with Tab and the arrow keys, to see where each head looks while the model says it; click to keep it. Point at the picture to see which words look there: the stronger a word is coloured, the more.",
        ),
        wordBar,
        el(
            "div",
            { class: "split" },
            el("div", { class: "grow" }, main.element),
            el(
                "aside",
                {},
                el("h4", {}, "Each head"),
                el(
                    "div",
                    { class: "look-heads" },
                    heads.map((head, n) =>
                        el(
                            "button",
                            {
                                type: "button",
                                class: "small-card",
                                id: `look-head-${head.layer}-${head.head}`,
                                onclick: () =>
                                    app.set({
                                        view: "head",
                                        kind: "cross",
                                        layer: head.layer,
                                        head: head.head,
                                        row: shown,
                                    }),
                            },
                            el("b", {}, headName(head)),
                            canvases[n],
                        ),
                    ),
                ),
            ),
        ),
    );
}

// The words as rows of one head, for its own view.
export function rowWords(app) {
    const words = saidWords(app.sentence());
    return el(
        "div",
        { class: "look-words", role: "group", "aria-label": "Words" },
        words.map(({ row, text }) =>
            el(
                "button",
                {
                    type: "button",
                    id: `row-${row}`,
                    class: "look-word",
                    "aria-pressed": String(app.state.row === row),
                    onclick: () => app.set({ row: app.state.row === row ? -1 : row, column: -1 }),
                },
                text,
            ),
        ),
    );
}
