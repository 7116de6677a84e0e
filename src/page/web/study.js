// SPDX-License-Identifier: MIT
// The Study view: experiments on the sentence. Words are hidden and heads disabled; every word of the
// text is then compared with what the whole model gives it. The model answers, so the page must be
// live.
import { inUnits } from "./picture.js";
import { readChanges, wordChanges } from "./live.js";
import { headName } from "./data.js";
import { wordPart } from "./study_word.js";
import { patchTool } from "./study_patch.js";
import { lensPart } from "./study_lens.js";
import { hidableWords, hiddenTokens, percentText, probeOf } from "./study_data.js";
import { heatmapFigure } from "./figures.js";
import { figureView } from "./figure_view.js";
import { largestOf } from "./metrics.js";
import { el } from "./dom.js";

function signedText(value, digits) {
    return `${value < 0 ? "\u2212" : "+"}${Math.abs(value).toFixed(digits)}`;
}

// -------------------------------------------------------- what is changed -----

function hideChips(app) {
    const hidden = hiddenTokens(app);
    const chips = hidableWords(app.tokens.sentences[0]).map(({ text, tokens }) => {
        const is = tokens.every((n) => hidden.includes(n));
        const next = is
            ? hidden.filter((n) => !tokens.includes(n))
            : [...new Set([...hidden, ...tokens])].sort((a, b) => a - b);
        return el(
            "button",
            {
                type: "button",
                id: `hide-${tokens[0]}`,
                "aria-pressed": String(is),
                onclick: () => app.set({ hide: next.join(",") }),
            },
            text,
        );
    });
    return el(
        "div",
        { class: "study-tool" },
        el("h3", { id: "hide-title" }, inUnits(app, "Hide words")),
        el(
            "p",
            { class: "hint" },
            inUnits(
                app,
                "No word attends to a hidden one, in any layer; the others keep their positions.",
            ),
        ),
        el("div", { class: "chips", role: "group", "aria-labelledby": "hide-title" }, chips),
    );
}

function closedList(app) {
    const closed = readChanges(app.live.closed);
    return el(
        "div",
        { class: "study-tool" },
        el("h3", {}, "Disable heads"),
        el(
            "p",
            { class: "hint", id: "study-closed" },
            closed.length
                ? `${closed.map((one) => `${headName(one)} (${one.change})`).join(", ")}.`
                : "None is disabled: the Wall has a button below each head.",
        ),
    );
}

// ------------------------------------------------------------ what it does -----

function writtenPart(written) {
    if (!written) return null;
    const same = written.before === written.after;
    const marked = wordChanges(written.before, written.after).flatMap(({ word, change }) => [
        change ? el(change, {}, word) : word,
        " ",
    ]);
    return el(
        "p",
        { id: "study-written", class: "difference" },
        same ? `The translation stays \u201c${written.after}\u201d.` : marked,
    );
}

function likelyText(likely) {
    return likely.map(({ word, p }) => `${word} ${percentText(Math.log(p))}`).join(", ");
}

// What the model would say instead, if that is another word.
function insteadText(row) {
    const [before] = row.likely_before,
        [after] = row.likely_after;
    const now = after.number === row.number ? "" : after.word;
    if (before.number === after.number) return now;
    return now === "" ? `again ${after.word}` : now;
}

function wordRow(app, row, n) {
    const change = row.after - row.before;
    return el(
        "tr",
        { class: n === app.state.said ? "chosen" : null },
        el(
            "th",
            { scope: "row" },
            el(
                "button",
                {
                    type: "button",
                    class: "quiet",
                    id: `said-${n}`,
                    "aria-pressed": String(n === app.state.said),
                    onclick: () => app.set({ said: n === app.state.said ? -1 : n, word: -1 }),
                },
                row.word,
            ),
        ),
        el("td", { title: likelyText(row.likely_before) }, percentText(row.before)),
        el("td", { title: likelyText(row.likely_after) }, percentText(row.after)),
        el(
            "td",
            { class: Math.abs(change) >= 0.1 ? (change < 0 ? "less" : "more") : null },
            change === 0 ? "0" : signedText(change, 3),
        ),
        row.second === undefined ? null : el("td", {}, percentText(row.second)),
        el("td", {}, insteadText(row)),
    );
}

function wordTable(app, rows) {
    const known = rows.map((row, n) => ({ row, n })).filter(({ row }) => row.word !== undefined);
    const sum = known.reduce((total, { row }) => total + row.after - row.before, 0);
    return el(
        "div",
        {},
        el(
            "p",
            { id: "study-sum" },
            `All words together: ${sum === 0 ? "0" : signedText(sum, 3)} nats.`,
        ),
        el(
            "p",
            { class: "hint" },
            "The probability of every word, given those before it: of the whole model, and with these ",
            "changes. Choose a word to take it apart.",
        ),
        el(
            "div",
            { class: "scroll", tabindex: 0, role: "region", "aria-label": "Every word" },
            el(
                "table",
                { class: "study-words", id: "study-table" },
                el(
                    "thead",
                    {},
                    el(
                        "tr",
                        {},
                        [
                            ...["word", "before", "after", "\u0394 ln p"],
                            ...(rows[0].second === undefined ? [] : ["on B"]),
                            "would say",
                        ].map((title) => el("th", { scope: "col" }, title)),
                    ),
                ),
                el(
                    "tbody",
                    {},
                    known.map(({ row, n }) => wordRow(app, row, n)),
                ),
            ),
        ),
    );
}

function turnedPart(turned) {
    return el(
        "p",
        { id: "study-sum" },
        `This model predicts no words. The text\u2019s vector turns: 1 \u2212 cosine is `,
        `${turned.toFixed(4)} (0: unchanged, 1: at a right angle).`,
    );
}

function resultPart(app) {
    const { probe, error, waiting } = probeOf(app);
    if (error) return el("p", { id: "study-message", class: "warning" }, error);
    if (!probe)
        return el("p", { id: "study-message" }, "The experiment is being computed \u2026");
    return el(
        "div",
        { id: "study-result", "aria-busy": String(waiting) },
        writtenPart(probe.written),
        probe.rows
            ? el("div", { class: "study-columns" }, wordTable(app, probe.rows), lensPart(app, probe))
            : turnedPart(probe.turned),
        wordPart(app, probe),
    );
}

// ------------------------------------------------- every head, every word -----

// The heads of the chosen kind as rows, words as columns: what becomes of each word without each head.
function effectsFigure(app, heads) {
    const { expected, target } = app.tokens.sentences[app.state.sentence];
    const count = target.length;
    const values = new Float64Array(heads.length * count);
    heads.forEach((head, i) =>
        head.wordLosses.forEach((loss, j) => {
            values[i * count + j] = loss === 0 ? 0 : -loss;
        }),
    );
    return heatmapFigure({
        name: `mha-${app.state.kind}-word-effects`,
        title: `Every word without each head, ${app.state.kind}`,
        summary:
            "\u0394 ln p of each word when only this head is disabled: blue where the word becomes less " +
            "likely, orange where it becomes likelier." +
            (app.live?.closed ? " Measured in addition to the heads that are disabled." : ""),
        rows: heads.length,
        columns: count,
        rowWords: heads.map((head) => `${head.layer}.${head.head}`),
        columnWords: expected,
        values,
        most: largestOf(values.map(Math.abs), 0.05),
        diverging: true,
        selected: heads.findIndex(
            ({ layer, head }) => layer === app.state.layer && head === app.state.head,
        ),
        visible: () => true,
        room: { width: app.width(), height: Math.max(480, 18 * heads.length + 120) },
    });
}

function effectsPart(app) {
    const heads = app.tokens.sentences[app.state.sentence].heads[app.state.kind];
    if (heads[0].lossUnit !== "nats") return null;
    if (heads[0].loss === null)
        return el(
            "p",
            { class: "hint", id: "study-effects" },
            app.live
                ? "What each head does to every word is being measured, unless that takes too long."
                : "What each head does to every word was not measured for this page.",
        );
    return el(
        "div",
        { id: "study-effects" },
        figureView(effectsFigure(app, heads), {
            id: "word-effects",
            hint: "Click, or Enter, shows the head.",
            onchoose: (i) =>
                app.set({ view: "head", layer: heads[i].layer, head: heads[i].head }),
        }).element,
    );
}

const NOT_LIVE =
    "Experiments need the model: open the page of \u201cmha serve\u201d, or one that was written with " +
    "\u201cmha view --live\u201d.";

export function studyView(app) {
    return el(
        "div",
        { class: "study" },
        app.live
            ? [
                  el("div", { class: "study-tools" }, hideChips(app), patchTool(app), closedList(app)),
                  resultPart(app),
              ]
            : el("p", { id: "study-message" }, NOT_LIVE),
        app.tokens.model ? effectsPart(app) : null,
    );
}
