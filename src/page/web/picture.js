// SPDX-License-Identifier: MIT
// Pictures: what a model reads that reads no words, cut into patches, and heads drawn over it as
// "mha see --heads" draws them (src/program/see_heads.c). head.patches says that the columns of a head
// are patches: {picture, rows: its rows are patches too}. Tokens before the patches are marks. The
// overlay has the colours of the dark scale in both themes, since it lies on a darkened picture.
import { rowOf } from "./data.js";
import { colorBytes } from "./color.js";
import { shownValues } from "./metrics.js";
import { CanvasPainter } from "./painter.js";
import { el } from "./dom.js";

const COVER = 0.8; // of the picture, by the colour of the largest share
const LINE = "rgba(255,255,255,0.28)";
const ROW_LINE = "#ffb454";
const CURSOR_LINE = "#ffffff";

// The name of token n: of a mark, or row and column of a patch, from 1.
export function patchName({ across, marks }, n) {
    const patch = n - marks;
    return `${Math.floor(patch / across) + 1}.${(patch % across) + 1}`;
}

const UNITS = [
    [/\bWords\b/g, "Patches"],
    [/\b(words|tokens)\b/g, "patches"],
    [/\b(word|token)\b/g, "patch"],
    [/\bsentences\b/g, "pictures"],
    [/\b(sentence|text)\b/g, "picture"],
];

// What is said about words, said about patches if the page reads pictures and no words.
export function inUnits(app, text) {
    const { picture, target } = app.sentence();
    if (!picture || target) return text;
    return UNITS.reduce((said, [from, to]) => said.replace(from, to), text);
}

// ---------------------------------------------------------------- shares -----

// What a row of a head gives to each patch. values: of the whole head, or nothing: its weights.
export function rowShares(head, row, values) {
    const { marks } = head.patches.picture;
    const from = values
        ? values.subarray(row * head.columns, (row + 1) * head.columns)
        : rowOf(head, row);
    return from.subarray(marks);
}

// What the row that a class is read from gives to each patch or, if it is read from the mean of all
// rows, the mean of these.
export function readShares(head, values) {
    const { picture, rows } = head.patches;
    if (rows && picture.reads === "class") return rowShares(head, 0, values);
    const sum = new Float64Array(picture.across * picture.across);
    for (let i = 0; i < head.rows; i++) {
        const row = rowShares(head, i, values);
        for (let n = 0; n < sum.length; n++) sum[n] += row[n];
    }
    return sum.map((value) => value / head.rows);
}

// The words for readShares().
export function readWords({ patches: { picture, rows } }) {
    if (!rows) return "where the rows of all words look, on average";
    return picture.reads === "class"
        ? "where the row of the class token looks, from which the class is read"
        : "where the rows look on average; the class is read from their mean";
}

export function largestShare(shares) {
    return shares.reduce((most, value) => (value > most ? value : most), 0) || 1;
}

// heats[side * side]: the share of every pixel, from 0 to 1, as the mean of the patches it is in.
export function heatsOf(picture, shares, most = largestShare(shares)) {
    const { side, patch, stride, across } = picture;
    const heats = new Float64Array(side * side),
        counts = new Uint16Array(side * side);
    for (let n = 0; n < across * across; n++) {
        const top = Math.floor(n / across) * stride,
            left = (n % across) * stride;
        const heat = Math.min(1, shares[n] / most);
        for (let y = top; y < top + patch; y++)
            for (let x = left; x < left + patch; x++) {
                heats[y * side + x] += heat;
                counts[y * side + x]++;
            }
    }
    return heats.map((heat, n) => (counts[n] > 0 ? heat / counts[n] : 0));
}

// A function of row and column of a pixel that gives its three bytes. shares null: no overlay.
export function overlayBytes(picture, shares, most) {
    const { side, pixels } = picture;
    if (!shares) return (i, j) => pixels.subarray(3 * (i * side + j), 3 * (i * side + j) + 3);
    const heats = heatsOf(picture, shares, most);
    return (i, j) => {
        const n = i * side + j,
            above = colorBytes("dark", "sequential", heats[n]),
            cover = COVER * heats[n];
        return [0, 1, 2].map((c) =>
            Math.floor((1 - cover) * (pixels[3 * n + c] >> 1) + cover * above[c] + 0.5),
        );
    };
}

// -------------------------------------------------------------- thumbnails -----

const THUMB = 112;

// The picture of a sentence, or a head over it, as large as a card has room.
export function pictureThumb(canvas, picture, shares = null) {
    const scale = window.devicePixelRatio || 1,
        size = THUMB * scale;
    canvas.width = canvas.height = size;
    const painter = new CanvasPainter(canvas.getContext("2d"));
    const cell = size / picture.side;
    painter.cells(0, 0, cell, cell, picture.side, picture.side, overlayBytes(picture, shares), {}, "");
}

// ------------------------------------------------------------------ figure -----

// The lines between patches lie in the middle of what two of them share.
function gridOf(picture, size) {
    const { side, patch, stride, across } = picture;
    const begin = (patch - stride) / 2,
        unit = size / side;
    return {
        unit,
        line: (n) => (n === 0 || n === across ? (n === 0 ? 0 : size) : (begin + n * stride) * unit),
        cellAt: (place) =>
            Math.min(across - 1, Math.max(0, Math.floor((place / unit - begin) / stride))),
    };
}

function percentWords(value) {
    return `${(100 * value).toFixed(1)} %`;
}

// Where a row looks most, as text.
export function mostWords(picture, shares, count = 3) {
    return Array.from(shares, (value, n) => ({ value, n }))
        .sort((a, b) => b.value - a.value)
        .slice(0, count)
        .map(({ value, n }) => `${patchName(picture, n + picture.marks)} ${percentWords(value)}`)
        .join(", ");
}

// The picture with one row of a head over it. f: {name, title, summary, picture, sharesOf(token or
// -1): of a row or, -1, of what is shown if none is pointed at, rowName(token), fixed: the token of the
// row that is shown whatever is pointed at, -1: that of the patch, rows: patches have rows, room:
// pixels, exact(value): as text}
export function pictureFigure(f) {
    const { picture } = f,
        { across, side, patch, stride, marks } = picture;
    const size = Math.max(160, Math.min(f.room, 560));
    const { unit, line, cellAt } = gridOf(picture, size);
    const images = {};
    const tokenAt = ({ i, j }) => marks + i * across + j;
    const shownRow = (cursor) =>
        f.fixed >= 0 ? f.fixed : cursor && f.rows ? tokenAt(cursor) : -1;

    function drawPatch(painter, { i, j }, color) {
        const thick = 2;
        painter.frame(
            j * stride * unit + 1,
            i * stride * unit + 1,
            patch * unit - 2,
            patch * unit - 2,
            color,
            thick,
        );
    }
    function placeOf(token) {
        const n = token - marks;
        return n < 0 ? null : { i: Math.floor(n / across), j: n % across };
    }
    function draw(painter, look, cursor) {
        const row = shownRow(cursor);
        const shares = f.sharesOf(row);
        const cell = size / side;
        // Only what is shown if nothing is pointed at is kept: there are as many others as patches.
        const kept = row === f.fixed ? images : {};
        const bytesOf = overlayBytes(picture, shares);
        painter.cells(0, 0, cell, cell, side, side, bytesOf, kept, `row ${row}`);
        if (across <= 40)
            for (let n = 1; n < across; n++) {
                painter.rect(line(n), 0, 1, size, LINE);
                painter.rect(0, line(n), size, 1, LINE);
            }
        if (row >= 0 && f.rows && placeOf(row)) drawPatch(painter, placeOf(row), ROW_LINE);
        if (cursor && !(row >= 0 && f.rows && tokenAt(cursor) === row))
            drawPatch(painter, cursor, CURSOR_LINE);
    }
    function describe(i, j) {
        const token = tokenAt({ i, j }),
            row = shownRow({ i, j });
        const shares = f.sharesOf(row);
        const here = `patch ${patchName(picture, token)}`;
        if (row === token && f.fixed < 0)
            return `${here} looks most at ${mostWords(picture, shares)}`;
        return `${f.rowName(row)} \u2192 ${here}: ${f.exact(shares[token - marks])}`;
    }
    function table() {
        const shares = f.sharesOf(f.fixed);
        return [
            ["", ...Array.from({ length: across }, (_, j) => `column ${j + 1}`)],
            ...Array.from({ length: across }, (_, i) => [
                `row ${i + 1}`,
                ...Array.from({ length: across }, (_, j) => f.exact(shares[i * across + j])),
            ]),
        ];
    }
    return {
        name: f.name,
        title: f.title,
        summary: f.summary,
        width: size,
        height: size,
        rows: across,
        columns: across,
        draw,
        describe,
        table,
        hit: (x, y) =>
            x < 0 || y < 0 || x >= size || y >= size ? null : { i: cellAt(y), j: cellAt(x) },
    };
}

// ------------------------------------------------------------------- classes -----

const CLASSES_SHOWN = 3;

// {name, p} of all classes, the most probable first.
export function rankedClasses(page, { probabilities }) {
    return probabilities
        .map((p, n) => ({ name: page.classes?.[n] ?? String(n), p, n }))
        .sort((a, b) => b.p - a.p);
}

// The most probable classes as bars.
export function classList(page, sentence) {
    if (!sentence.probabilities) return null;
    return el(
        "ol",
        { class: "classes", id: "classes" },
        rankedClasses(page, sentence)
            .slice(0, CLASSES_SHOWN)
            .map(({ name, p }) =>
                el(
                    "li",
                    {},
                    el("span", { class: "class-name" }, name),
                    el(
                        "span",
                        { class: "meter", "aria-hidden": "true" },
                        el("i", { style: `width:${(100 * p).toFixed(1)}%` }),
                    ),
                    el("b", {}, `${(100 * p).toFixed(2)} %`),
                ),
            ),
    );
}

// The picture above the views, and what the model says of it.
export function pictureLine(page, sentence) {
    const canvas = el("canvas", {
        class: "seen",
        id: "seen",
        role: "img",
        "aria-label": `the picture ${sentence.text}, as the model reads it`,
    });
    pictureThumb(canvas, sentence.picture);
    return el("div", { class: "picture-line" }, canvas, classList(page, sentence));
}

// ---------------------------------------------------------------- head view -----

// The picture with the row of the patch that is pointed at, or that is chosen. The choice is the row of
// the state; with a row, choosing is of a column, whose weight is explained.
export function headPicture(app, head, mode, room) {
    const { picture, rows } = head.patches,
        { row } = app.state;
    const values = mode === "raw" ? null : shownValues(head, mode);
    const known = new Map();
    const sharesOf = (token) => {
        if (!known.has(token))
            known.set(
                token,
                token < 0 ? readShares(head, values) : rowShares(head, token, values),
            );
        return known.get(token);
    };
    const name = (token) =>
        token < 0 ? "the mean of the rows" : `row ${head.rowLabels[token]}`;
    return pictureFigure({
        name: `mha-${head.kind}-${head.layer}.${head.head}-picture`,
        title: `${head.kind} ${head.layer}.${head.head} over the picture`,
        summary:
            row >= 0
                ? `The row of ${head.rowLabels[row]}: how much of its weight each patch gets; most at ${mostWords(picture, sharesOf(row))}.`
                : `Without a patch pointed at: ${readWords(head)}; most at ${mostWords(picture, sharesOf(-1))}.`,
        picture,
        sharesOf,
        rowName: (token) =>
            token < 0 && rows && picture.reads === "class" ? "the class token" : name(token),
        fixed: row,
        rows,
        room,
        exact: (value) => (mode === "norm" ? value.toPrecision(4) : value.toFixed(4)),
    });
}
