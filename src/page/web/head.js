// SPDX-License-Identifier: MIT
// The Head view: map or arcs of one head, the chosen row as bars, its role and numbers, and the
// nearest heads.
import { headFile, headName, isVisible, rowOf, seenColumns, weightError } from "./data.js";
import {
    divergenceStep,
    headDivergence,
    hiddenColumns,
    largestOf,
    largestPlaces,
    MODES,
    rowEntropy,
    shownValues,
} from "./metrics.js";
import { arcsFigure, barsFigure, heatmapFigure } from "./figures.js";
import { figureView } from "./figure_view.js";
import { chooser, el } from "./dom.js";
import { largestEntropy, runnerText } from "./roles.js";
import { roleBadge } from "./legend.js";
import { alignmentError } from "./query.js";
import { effectOf, lossText } from "./wall.js";
import { ablationPart } from "./ablation.js";
import { longMap } from "./long_map.js";
import { showCell } from "./cell.js";
import { changeOf } from "./live.js";
import { headPicture } from "./picture.js";
import { rowWords } from "./look.js";
import { givenHeads, headSeries, headsChooser } from "./several.js";

// Cells where the grammar says that two words belong together: {row, column, name}.
export function goldCells(page, head) {
    const sentence = page.sentences[head.sentence];
    if (!sentence.roles) return [];
    if (head.kind === "cross")
        return sentence.alignment.flatMap((sources, i) =>
            sources.map((j) => ({ row: i, column: j, name: "alignment" })),
        );
    const side = head.kind === "encoder" ? "source" : "target";
    const shift = head.kind === "encoder" ? 0 : 1;
    return sentence.roles
        .filter((role) => role[side][0] >= 0)
        .flatMap((role) => {
            const [a, b] = role[side].map((place) => place + shift);
            return [
                { row: a, column: b, name: role.name },
                { row: b, column: a, name: role.name },
            ];
        })
        .filter(({ row, column }) => isVisible(head, row, column));
}

// Modes that need the lengths of values are only for pages that have them.
export function modesOf(head) {
    const marked = hiddenColumns(head).length > 1 || head.patches?.picture.marks > 0;
    const hidden = { hidden: marked ? "Marks hidden" : MODES.hidden };
    return {
        raw: MODES.raw,
        ...(head.valueNorms ? { norm: MODES.norm } : {}),
        // All columns of a picture without marks are patches.
        ...(head.patches && !marked ? {} : hidden),
    };
}

export function formsOf(head) {
    return head.patches
        ? { map: "Picture", matrix: "Matrix", arcs: "Arcs" }
        : { map: "Map", arcs: "Arcs" };
}

// The error of a shown number by rounding; undefined: all are exact.
function errorOf(head, mode) {
    if (!head.compact) return undefined;
    return (i, j) => {
        const row = rowOf(head, i);
        const taken = hiddenColumns(head).reduce((sum, n) => sum + row[n], 0);
        const rest = mode === "hidden" ? Math.max(1e-6, 1 - taken) : 1;
        return weightError(head, i, row[j]) / rest;
    };
}

function precisionText(head) {
    return head.compact ? " Values are rounded to 12 bits, by their square root." : "";
}

export function headMatrix(app, head, extra = {}) {
    const { stretch, gold } = app.state;
    const mode = app.state.mode in modesOf(head) ? app.state.mode : "raw";
    const values = shownValues(head, mode);
    const scale = stretch || mode === "norm" || head.large ? largestOf(values) || 1 : 1;
    return {
        name: `${headFile(head)}-${mode}`,
        title: headName(head),
        summary:
            `${modesOf(head)[mode]}: ${head.rows} rows attend, ${head.columns} columns are attended to; ` +
            `colours from 0 to ${scale.toFixed(2)}${head.large ? ", by square roots" : ""}.` +
            (app.sentence().expected && head.kind !== "encoder"
                ? " Rows: the word read \u25b8 the word said."
                : "") +
            precisionText(head),
        rows: head.rows,
        columns: head.columns,
        rowWords: head.rowLabels,
        columnWords: head.columnWords,
        values,
        most: scale,
        root: head.large,
        error: errorOf(head, mode),
        visible: (i, j) => isVisible(head, i, j),
        marks: gold ? goldCells(app.page, head).map(({ row, column }) => [row, column]) : [],
        selected: app.state.row,
        room: { width: app.width(), height: Math.max(620, window.innerHeight - 330) },
        ...extra,
    };
}

const COLUMNS_SHOWN = 30;

function rowFigure(head, matrix, row) {
    const values = matrix.values.subarray(row * head.columns, (row + 1) * head.columns);
    const seen = values.subarray(0, seenColumns(head, row));
    const shown = largestPlaces(seen, COLUMNS_SHOWN),
        cut = shown.length < seen.length;
    if (cut) shown.sort((a, b) => seen[b] - seen[a]);
    return barsFigure({
        name: `${matrix.name}-row${row + 1}`,
        title: `Row \u201c${head.rowLabels[row]}\u201d`,
        summary:
            `What this row looks at. Entropy ${rowEntropy(rowOf(head, row)).toFixed(3)} nats.` +
            (cut ? ` The ${shown.length} largest of ${seen.length} columns.` : ""),
        words: shown.map((j) => head.columnWords[j]),
        values: shown.map((j) => values[j]),
        most: matrix.most,
        marks: matrix.marks.filter(([i]) => i === row).map(([, j]) => shown.indexOf(j)),
        room: { width: 360 },
    });
}

function nearestHeads(app, item) {
    const others = app
        .items()
        .filter(({ head }) => head !== item.head)
        .map((other) => ({ other, distance: headDivergence(item.head, other.head) }))
        .sort((a, b) => a.distance - b.distance)
        .slice(0, 4);
    if (others.length === 0) return null;
    const step = divergenceStep(item.head);
    return el(
        "div",
        {},
        el("h4", {}, step > 1 ? `Nearest heads, by one row in ${step}` : "Nearest heads"),
        el(
            "ol",
            { class: "near" },
            others.map(({ other, distance }) =>
                el(
                    "li",
                    {},
                    el(
                        "button",
                        {
                            type: "button",
                            id: `near-${other.head.layer}-${other.head.head}`,
                            onclick: () =>
                                app.set({ layer: other.head.layer, head: other.head.head }),
                        },
                        headName(other.head),
                    ),
                    roleBadge(other.role),
                    el(
                        "span",
                        { title: "mean Jensen-Shannon divergence of rows, 0 to 0.693 nats" },
                        distance.toFixed(3),
                    ),
                    el(
                        "button",
                        {
                            type: "button",
                            class: "quiet",
                            id: `diff-${other.head.layer}-${other.head.head}`,
                            onclick: () =>
                                app.set({
                                    view: "compare",
                                    other: [
                                        app.state.sentence,
                                        other.head.kind,
                                        other.head.layer,
                                        other.head.head,
                                    ].join("."),
                                }),
                        },
                        "compare",
                    ),
                ),
            ),
        ),
    );
}

function scoreWords({ score, threshold, over }) {
    return score === null ? "" : `${score.toFixed(2)} (needs ${threshold.toFixed(2)}) over ${over}`;
}

// The role over many sentences, if they were studied, and on this one.
function roleLines(app, { head, here, role }) {
    const line = (title, shown, badge) =>
        el(
            "div",
            { class: "role-line" },
            el("h4", {}, title),
            el("p", {}, badge, ` ${shown.words}`),
            el(
                "p",
                {
                    class: "hint",
                    title: "A role is the first rule whose score reaches its threshold.",
                },
                [scoreWords(shown), runnerText(shown)].filter((part) => part !== "").join("; "),
            ),
        );
    const study = app.page.study;
    const studied = () =>
        line(
            study.file
                ? `Over ${study.sentences} ${role.picture ? "pictures" : "texts"} of ${study.file.split("/").at(-1)}`
                : `Over ${study.sentences} sentences of the ${study.split} split`,
            role,
            roleBadge(role),
        );
    const own = here.picture ? "On this picture" : "On this sentence";
    return [head.study ? studied() : null, line(own, here, roleBadge(here))];
}

// A page of tokens has the numbers of whole words.
function unitWords({ rows, columns, words }) {
    if (rows === words.rows && columns === words.columns) return null;
    return el(
        "p",
        { class: "hint" },
        `Roles and numbers are those of whole words, here ${words.rows} \u00d7 ${words.columns}; ` +
            `the map shows ${rows} \u00d7 ${columns} tokens.`,
    );
}

// Shares of the weight, and what is more than equal weights would have.
function patchShares(m) {
    const names = ["class", "self", "around", "above", "below", "left", "right", "row", "column"];
    const more = ["border", "same_part", "object"];
    const known = (list) => list.filter((name) => (m[name] ?? null) !== null);
    return (
        known(names)
            .map((name) => `${name} ${m[name].toFixed(2)}`)
            .join(", ") +
        "; more than equal weights: " +
        known(more)
            .map((name) => `${name.replace("_", " ")} ${m[name].toFixed(2)}`)
            .join(", ")
    );
}

// The numbers of this sentence, by the names of "mha heads".
function facts(app, item) {
    const { head } = item,
        m = head.measures,
        aer = alignmentError(m);
    const list = (name, text) => [el("dt", {}, name), el("dd", {}, text)];
    const share = (name) => `${name} ${m[name].toFixed(2)}`;
    const unit = item.here.picture ? "patches" : "words";
    const shares = () =>
        ["prev", "self", "next", "first", "end"]
            .filter((name) => m[name] !== null)
            .map(share)
            .join(", ");
    return el(
        "div",
        {},
        roleLines(app, item),
        unitWords(head),
        el(
            "dl",
            { class: "facts" },
            list(
                "entropy",
                `${m.entropy.toFixed(3)} nats, at most ${largestEntropy(head).toFixed(3)}`,
            ),
            list("broad", `${m.broad.toFixed(3)}, entropy as a share of the largest, row by row`),
            list("confidence", `${m.confidence.toFixed(3)}, the largest weight on average`),
            m.distance === null ? [] : list("distance", `${m.distance.toFixed(2)} ${unit} on average`),
            m.one >= 0.005
                ? list(
                      "one",
                      `${m.one.toFixed(2)} of the rows have more than half of their weight on the ` +
                          `same word`,
                  )
                : [],
            m.distance === null
                ? []
                : list("weight on", item.here.picture ? patchShares(m) : shares()),
            aer === null ? [] : list("aer", `${aer.toFixed(3)}, alignment error rate`),
            typeof head.study?.importance === "number"
                ? list("importance", head.study.importance.toFixed(3))
                : [],
            movedFact(app, head),
            head.loss === null
                ? []
                : [
                      list("if disabled", lossText(head)),
                      list("if uniform", effectOf(head.uniformLoss, head)),
                  ],
        ),
        changedWords(app, head),
    );
}

// What the model predicts without the head, at positions where that differs from what it predicts
// with all heads. Positions are of tokens.
function changedWords(app, head) {
    if (head.changed.length === 0) return null;
    const { said, target } = app.tokens.sentences[head.sentence];
    return [
        el("h4", {}, "Predictions that change if it is disabled"),
        el(
            "ul",
            { class: "changes" },
            head.changed.map(({ row, word }) =>
                el(
                    "li",
                    {},
                    `position ${row + 1}, after \u201c${target[row]}\u201d: \u201c${word}\u201d ` +
                        `instead of the model\u2019s own \u201c${said[row]}\u201d`,
                ),
            ),
        ),
    ];
}

// The weights of this head on all pairs of words that the grammar knows in this sentence.
function relations(app, head) {
    const cells = goldCells(app.page, head);
    if (cells.length === 0) return null;
    const sorted = cells
        .map((cell) => ({ ...cell, weight: head.weights[cell.row * head.columns + cell.column] }))
        .sort((a, b) => b.weight - a.weight);
    return el(
        "div",
        {},
        el("h4", {}, `Pairs of the grammar: ${cells.length} outlined in the map`),
        el(
            "ul",
            { class: "relations" },
            sorted.map(({ row, column, name, weight }) =>
                el(
                    "li",
                    {},
                    el("span", {}, `${head.rowLabels[row]} \u2192 ${head.columnWords[column]}`),
                    el("small", {}, name),
                    el("b", {}, weight.toFixed(3)),
                ),
            ),
        ),
    );
}

// Enabled, disabled or uniform: only on a served page.
function liveChooser(app, head) {
    if (!app.live) return null;
    const uniform = `Looks at all ${head.patches ? "patches" : "words"} equally`;
    const choices = { open: "Enabled", zero: "Disabled", uniform };
    return chooser(
        "change",
        "This head",
        choices,
        changeOf(app.live.closed, head) || "open",
        (to) => app.live.change(head, to === "open" ? "" : to),
    );
}

function movedFact(app, head) {
    if (!app.live?.closed) return [];
    const { shift, rows } = app.live.shift(head);
    return [
        el("dt", {}, "moved"),
        el(
            "dd",
            {},
            `${(100 * shift).toFixed(1)} % of a row\u2019s weight went to other columns, on average ` +
                `over ${rows} rows`,
        ),
    ];
}

// Whether the figure is the picture, not a map of rows and columns.
function isPicture(app) {
    const { form } = app.state;
    return app.item().head.patches && form !== "matrix" && form !== "arcs";
}

// The row that stays, or the one that is shown if no patch is pointed at.
function rowChooser(app) {
    const { row } = app.state,
        { head } = app.item();
    if (row < 0) return null;
    return chooser(
        "row-kept",
        "The row that is shown",
        { one: `Row ${head.rowLabels[row]}`, free: "Row of the patch pointed at" },
        "one",
        (to) => app.set(to === "free" ? { row: -1, column: -1 } : {}),
    );
}

function controls(app) {
    const { mode, form, stretch, gold } = app.state;
    return el(
        "div",
        { class: "bar" },
        liveChooser(app, app.item().head),
        chooser("form", "Form", formsOf(app.item().head), form, (to) => app.set({ form: to })),
        chooser("mode", "What is shown", modesOf(app.item().head), mode, (to) =>
            app.set({ mode: to }),
        ),
        isPicture(app)
            ? rowChooser(app)
            : chooser("stretch", "Colours", { 1: "Stretch colours" }, stretch, () =>
                  app.set({ stretch: stretch ? 0 : 1 }),
              ),
        app.sentence().roles
            ? chooser("gold", "Grammar", { 1: "Grammar\u2019s pairs" }, gold, () =>
                  app.set({ gold: gold ? 0 : 1 }),
              )
            : null,
    );
}

// The other heads of the layer that arcs show together with this one; none: only this one.
function arcHeads(app) {
    const ofLayer = app
        .items()
        .map(({ head }) => head)
        .filter(({ layer }) => layer === app.state.layer);
    const numbers = givenHeads(app.state, ofLayer.length);
    return {
        count: ofLayer.length,
        numbers,
        heads: ofLayer.filter(({ head }) => numbers.includes(head)),
    };
}

function withSeries(app, matrix) {
    const { heads } = arcHeads(app);
    if (app.state.form !== "arcs" || heads.length === 0) return matrix;
    const series = headSeries(heads, (head) => shownValues(head, app.state.mode));
    return {
        ...matrix,
        title: `${heads.length} heads of layer ${app.state.layer}, each in its colour`,
        series,
        most: Math.max(
            ...series.map(({ values }) => largestOf(values)),
            matrix.most > 1 ? matrix.most : 0.3,
        ),
    };
}

function arcsChooser(app) {
    if (app.state.form !== "arcs" || app.item().head.large) return null;
    const { count, numbers } = arcHeads(app);
    return headsChooser(app, count, numbers, "Several heads");
}

// The map or the arcs of a text that is short enough to show all words.
function shortMap(app, matrix, { onrow, onchoose }) {
    const figure = () =>
        (app.state.form === "arcs" ? arcsFigure : heatmapFigure)({
            ...withSeries(app, matrix),
            selected: app.state.row,
        });
    const main = figureView(figure(), {
        id: "main",
        hint: "Point at a cell, or move with the arrow keys.",
        onmove: onrow,
        onchoose: (i, j) => {
            onchoose(i, j);
            main.redraw(figure());
        },
    });
    return main;
}

// The head over the picture: a chosen patch keeps its row, then one is chosen as its column.
function overPicture(app, matrix, { onrow, onchoose }) {
    const { head } = app.item(),
        { picture, rows } = head.patches;
    const mode = app.state.mode in modesOf(head) ? app.state.mode : "raw";
    const figure = () => headPicture(app, head, mode, app.width());
    const tokenAt = (i, j) => picture.marks + i * picture.across + j;
    return figureView(figure(), {
        id: "main",
        hint: rows
            ? "Point at a patch, or move with the arrow keys, to see its row. Enter or a click keeps the row."
            : "Point at a patch, or move with the arrow keys.",
        onmove: (i, j) => onrow(app.state.row >= 0 || !rows ? app.state.row : tokenAt(i, j)),
        onchoose: (i, j) => {
            const token = tokenAt(i, j),
                { row } = app.state;
            if (rows && row < 0) app.set({ row: token, column: -1 });
            else if (rows && row === token) app.set({ row: -1, column: -1 });
            else if (row >= 0) onchoose(row, token);
        },
    });
}

export function headView(app) {
    const item = app.item(),
        { head } = item;
    const matrix = headMatrix(app, head);
    const rowRoom = el("div", {}),
        cellRoom = el("section", { class: "cell-room" });

    function showRow(row) {
        if (row < 0)
            rowRoom.replaceChildren(
                el(
                    "p",
                    { class: "hint" },
                    head.patches?.rows
                        ? "Choose a patch to see its row as bars."
                        : "Choose a row to see it as bars.",
                ),
            );
        else
            rowRoom.replaceChildren(
                figureView(rowFigure(head, matrix, row), { id: "row" }).element,
            );
    }
    const main = (isPicture(app) ? overPicture : head.large ? longMap : shortMap)(app, matrix, {
        onrow: showRow,
        onchoose: (i, j) => {
            app.note({ row: i, column: j });
            showRow(i);
            showCell(cellRoom, head, i, j);
        },
    });
    main.canvas.addEventListener("mouseleave", () => showRow(app.state.row));
    showRow(app.state.row);
    showCell(cellRoom, head, app.state.row, app.state.column);
    return el(
        "div",
        {},
        controls(app),
        head.patches && !head.patches.rows ? rowWords(app) : null,
        arcsChooser(app),
        el(
            "div",
            { class: "split" },
            el("div", { class: "grow" }, main.element),
            el(
                "aside",
                {},
                facts(app, item),
                ablationPart(app, head),
                rowRoom,
                relations(app, head),
                nearestHeads(app, item),
            ),
        ),
        cellRoom,
    );
}
