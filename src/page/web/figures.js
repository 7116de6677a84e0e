// SPDX-License-Identifier: MIT
// Figures as objects that painter.js draws and figure_view.js shows: {name, title, summary, width,
// height, rows, columns, draw(painter, look, cursor), hit(x, y) -> {i, j} or null, describe(i, j),
// table()}. look: colours of the theme. cursor: {i, j} or null. table(): rows of texts, the first
// one titles.
import { exactText, roundedText } from "./data.js";
import { colorBytes, colorText, inkOn } from "./color.js";
import { textWidth } from "./painter.js";

const LABEL = 13;
const GAP = 8;

// Wide enough for the chosen word in bold.
function widest(words) {
    return 1.08 * Math.max(0, ...words.map((word) => textWidth(word, LABEL)));
}

function cellError(m, i, j) {
    return m.error?.(i, j) ?? 0;
}

function matrixTable(m) {
    return [
        ["", ...m.columnWords],
        ...m.rowWords.map((word, i) => [
            word,
            ...m.columnWords.map((_, j) =>
                m.visible(i, j) ? roundedText(m.values[i * m.columns + j], cellError(m, i, j)) : "",
            ),
        ]),
    ];
}

function describeCell(m, i, j) {
    const from = m.rowWords[i],
        to = m.columnWords[j];
    if (!m.visible(i, j)) return `${from} \u2192 ${to}: masked, not visible from here`;
    const error = cellError(m, i, j);
    const value = roundedText(m.values[i * m.columns + j], error);
    return `${from} \u2192 ${to}: ${value}${error > 0 ? ` \u00b1 ${error.toPrecision(1)}` : ""}`;
}

// A part of a matrix, of at most `side` rows and columns around a cell.
export function windowOf(m, row, column, side) {
    const begin = (place, count) => Math.max(0, Math.min(count - side, place - (side >> 1)));
    const rows = Math.min(side, m.rows),
        columns = Math.min(side, m.columns);
    const top = begin(row, m.rows),
        left = begin(column, m.columns);
    const values = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++)
            values[i * columns + j] = m.values[(top + i) * m.columns + left + j];
    return {
        ...m,
        top,
        left,
        rows,
        columns,
        values,
        rowWords: m.rowWords.slice(top, top + rows),
        columnWords: m.columnWords.slice(left, left + columns),
        visible: (i, j) => m.visible(top + i, left + j),
        error: m.error && ((i, j) => m.error(top + i, left + j)),
        marks: (m.marks ?? [])
            .map(([i, j]) => [i - top, j - left])
            .filter(([i, j]) => i >= 0 && i < rows && j >= 0 && j < columns),
        selected: m.selected >= top && m.selected < top + rows ? m.selected - top : -1,
    };
}

// Beyond this the cells are too small for words.
const WORDS_MAX = 128;

// m: {name, title, summary, rows, columns, rowWords, columnWords, values, visible(i, j), most,
// diverging, root: colours by square roots, error(i, j): of a value, marks: [[i, j]],
// room: {width, height}, selected: row, frame: {top, left, rows, columns}}
export function heatmapFigure(m) {
    const worded = m.rows <= WORDS_MAX && m.columns <= WORDS_MAX;
    const left = worded ? widest(m.rowWords) + GAP + 4 : GAP;
    const top = worded ? widest(m.columnWords) * 0.75 + GAP + 14 : GAP;
    const right = worded ? widest(m.columnWords.slice(-1)) * 0.75 + 12 : GAP;
    const room = Math.min(
        (m.room.width - left - right) / m.columns,
        (m.room.height - top) / m.rows,
    );
    const size = Math.max(worded ? 15 : 1, Math.min(72, Math.floor(room)));
    const map = m.diverging ? "diverging" : "sequential";
    const even = (part) => (m.root ? Math.sign(part) * Math.sqrt(Math.abs(part)) : part);
    const share = (value) => (m.diverging ? 0.5 + even(value / m.most) / 2 : even(value / m.most));
    const images = {};
    const value = (i, j) => m.values[i * m.columns + j];
    const gridHeight = m.rows * size;

    function drawLabels(painter, look, cursor) {
        m.rowWords.forEach((word, i) =>
            painter.text(left - GAP, top + (i + 0.5) * size + 4.5, word, {
                size: LABEL,
                anchor: "end",
                fill: cursor?.i === i || m.selected === i ? look.ink : look.dim,
                weight: cursor?.i === i || m.selected === i ? 650 : 400,
            }),
        );
        m.columnWords.forEach((word, j) =>
            painter.text(left + (j + 0.5) * size + 4, top - GAP, word, {
                size: LABEL,
                rotate: -48,
                fill: cursor?.j === j ? look.ink : look.dim,
                weight: cursor?.j === j ? 650 : 400,
            }),
        );
    }

    function drawNumbers(painter, look) {
        for (let i = 0; i < m.rows; i++)
            for (let j = 0; j < m.columns; j++) {
                const text = Math.abs(value(i, j)).toFixed(2).replace(/^0/, "");
                const sign = !m.diverging ? "" : value(i, j) < 0 ? "\u2212" : "+";
                if (m.visible(i, j) && text !== ".00")
                    painter.text(
                        left + (j + 0.5) * size,
                        top + (i + 0.5) * size + 3.5,
                        sign + text,
                        {
                            size: 10.5,
                            anchor: "middle",
                            fill: inkOn(look.theme, map, share(value(i, j))),
                        },
                    );
            }
    }

    function drawScale(painter, look) {
        const y = top + gridHeight + 18,
            width = Math.min(180, Math.max(90, m.columns * size));
        const least = m.diverging ? -m.most : 0;
        for (let n = 0; n < 60; n++)
            painter.rect(
                left + (n * width) / 60,
                y,
                width / 60 + 0.5,
                8,
                colorText(look.theme, map, n / 59),
            );
        painter.text(left, y + 22, least.toFixed(2), { size: 11, fill: look.dim });
        painter.text(left + width, y + 22, m.most.toFixed(2), {
            size: 11,
            fill: look.dim,
            anchor: "end",
        });
    }

    return {
        ...m,
        width: left + m.columns * size + right,
        height: top + gridHeight + 46,
        draw(painter, look, cursor) {
            const masked = look.masked;
            painter.cells(
                left,
                top,
                size,
                size,
                m.rows,
                m.columns,
                (i, j) =>
                    m.visible(i, j) ? colorBytes(look.theme, map, share(value(i, j))) : masked,
                images,
                look.theme,
            );
            if (worded) {
                for (let i = 0; i <= m.rows; i++)
                    painter.rect(left, top + i * size - 0.5, m.columns * size, 1, look.ground);
                for (let j = 0; j <= m.columns; j++)
                    painter.rect(left + j * size - 0.5, top, 1, gridHeight, look.ground);
                drawLabels(painter, look, cursor);
            }
            if (size >= 27) drawNumbers(painter, look);
            for (const [i, j] of m.marks ?? [])
                painter.frame(
                    left + j * size + 2.5,
                    top + i * size + 2.5,
                    size - 5,
                    size - 5,
                    look.gold,
                    2,
                );
            if (m.frame)
                painter.frame(
                    left + m.frame.left * size - 1,
                    top + m.frame.top * size - 1,
                    m.frame.columns * size + 2,
                    m.frame.rows * size + 2,
                    look.gold,
                    2,
                );
            if (worded && m.selected >= 0)
                painter.frame(
                    left - 1,
                    top + m.selected * size - 1,
                    m.columns * size + 2,
                    size + 2,
                    look.accent,
                    1.5,
                );
            if (cursor)
                painter.frame(
                    left + (cursor.j + 0.5) * size - Math.max(4, size / 2),
                    top + (cursor.i + 0.5) * size - Math.max(4, size / 2),
                    Math.max(8, size),
                    Math.max(8, size),
                    look.accent,
                    worded ? 3 : 2,
                );
            drawScale(painter, look);
        },
        hit(x, y) {
            const i = Math.floor((y - top) / size),
                j = Math.floor((x - left) / size);
            return i >= 0 && i < m.rows && j >= 0 && j < m.columns ? { i, j } : null;
        },
        describe: (i, j) => describeCell(m, i, j),
        table: () => matrixTable(m),
    };
}

// What is drawn: the values of the figure in the accent's colour, or several heads, each in its own,
// side by side in a room of so many pixels: {color, values, shift, thick: of a weight of 1}.
function seriesOf(m, look, { thick, room }) {
    if (!m.series) return [{ color: look.accent, values: m.values, shift: 0, thick }];
    const lane = Math.min(thick + 1, room / m.series.length);
    return m.series.map((one, n) => ({
        ...one,
        shift: (n - (m.series.length - 1) / 2) * lane,
        thick: 0.85 * lane,
    }));
}

function eachCell(m, act) {
    for (let i = 0; i < m.rows; i++) for (let j = 0; j < m.columns; j++) act(i, j);
}

// The value of a cell; of several heads each.
function describeSeries(m, i, j) {
    if (!m.series || !m.visible(i, j)) return describeCell(m, i, j);
    const values = m.series.map(
        ({ name, values: own }) => `${name} ${exactText(own[i * m.columns + j])}`,
    );
    return `${m.rowWords[i]} \u2192 ${m.columnWords[j]}: ${values.join(", ")}`;
}

// Rows on the left, columns on the right, a line for each weight. m.series: several heads in one
// figure, [{name, color, values}]; m.values are then their mean.
export function arcsFigure(m) {
    const line = 30,
        top = 26;
    const left = widest(m.rowWords) + 2 * GAP;
    const span = Math.max(140, Math.min(440, m.room.width - left - widest(m.columnWords) - 40));
    const rowY = (i) => top + (i + 0.5) * line,
        x1 = left + span;
    const height = top + Math.max(m.rows, m.columns) * line + GAP;
    const strength = (i, j) => Math.min(1, m.values[i * m.columns + j] / m.most);
    const arc = (i, j, shift) => {
        const [y0, y1] = [rowY(i) + shift, rowY(j) + shift];
        return [left, y0, left + span * 0.45, y0, left + span * 0.55, y1, x1, y1];
    };
    return {
        ...m,
        width: x1 + widest(m.columnWords) + 3 * GAP,
        height,
        draw(painter, look, cursor) {
            const chosen = cursor?.i ?? m.selected;
            painter.text(left - GAP, 14, "looks", { size: 11, fill: look.dim, anchor: "end" });
            painter.text(x1 + GAP, 14, "at", { size: 11, fill: look.dim });
            seriesOf(m, look, { thick: 7, room: 20 }).forEach(({ color, values, shift, thick }) =>
                eachCell(m, (i, j) => {
                    const a = Math.min(1, values[i * m.columns + j] / m.most),
                        fade = chosen >= 0 && chosen !== i ? 0.16 : 1;
                    if (!m.visible(i, j) || a < 0.01) return;
                    painter.curve(
                        arc(i, j, shift),
                        color,
                        0.5 + thick * a,
                        fade * Math.min(1, 0.12 + a),
                    );
                }),
            );
            for (const [i, j] of m.marks ?? [])
                painter.curve(arc(i, j, 0), look.gold, 1.5, 1, [3, 4]);
            m.rowWords.forEach((word, i) =>
                painter.text(left - GAP, rowY(i) + 4.5, word, {
                    anchor: "end",
                    fill: chosen === i ? look.ink : look.dim,
                    weight: chosen === i ? 650 : 400,
                }),
            );
            m.columnWords.forEach((word, j) => {
                const most = chosen >= 0 ? strength(chosen, j) : 0;
                painter.text(x1 + GAP, rowY(j) + 4.5, word, {
                    fill: most > 0.15 ? look.ink : look.dim,
                    weight: most > 0.15 || cursor?.j === j ? 650 : 400,
                });
            });
            if (cursor)
                painter.rect(
                    x1 + GAP,
                    rowY(cursor.j) + 9,
                    textWidth(m.columnWords[cursor.j], LABEL),
                    2,
                    look.accent,
                );
        },
        hit(x, y) {
            const place = Math.floor((y - top) / line);
            if (place < 0) return null;
            const i = Math.min(m.rows - 1, Math.max(0, place));
            if (x < left + span / 2) return place < m.rows ? { i, j: strongest(m, i) } : null;
            return place < m.columns ? { i: m.selected >= 0 ? m.selected : 0, j: place } : null;
        },
        describe: (i, j) => describeSeries(m, i, j),
        table: () => matrixTable(m),
    };
}

export function strongest(m, i) {
    let best = 0;
    for (let j = 1; j < m.columns; j++)
        if (m.values[i * m.columns + j] > m.values[i * m.columns + best]) best = j;
    return best;
}

// b: {name, title, summary, words, values, most, signed, marks: [n], room, intervals: [[low, high]],
// digits}: a bar for each word.
export function barsFigure(b) {
    const line = b.words.length > 24 ? 15 : 22,
        size = b.words.length > 24 ? 11 : LABEL;
    const left = widest(b.words) + 2 * GAP;
    const span = Math.max(80, Math.min(320, b.room.width - left - 62));
    const zero = b.signed ? left + span / 2 : left;
    const scale = (b.signed ? span / 2 : span) / (b.most || 1);
    return {
        ...b,
        rows: b.words.length,
        columns: 1,
        width: left + span + 58,
        height: b.words.length * line + 6,
        draw(painter, look, cursor) {
            b.words.forEach((word, n) => {
                const y = n * line + 3,
                    value = b.values[n],
                    width = Math.abs(value) * scale;
                const mark = b.marks?.includes(n);
                if (cursor?.i === n) painter.rect(0, y - 1, left + span + 58, line, look.soft);
                painter.text(left - GAP, y + line * 0.68, word, {
                    anchor: "end",
                    size,
                    fill: mark ? look.gold : look.ink,
                    weight: mark ? 700 : 400,
                });
                painter.rect(
                    value < 0 ? zero - width : zero,
                    y + 2,
                    Math.max(width, 0.5),
                    line - 5,
                    value < 0
                        ? colorText(look.theme, "diverging", 0.12)
                        : b.signed
                          ? colorText(look.theme, "diverging", 0.88)
                          : look.accent,
                );
                if (b.intervals) {
                    const [low, high] = b.intervals[n].map((end) => zero + end * scale);
                    painter.rect(low, y + line / 2 - 1, Math.max(1, high - low), 1.5, look.ink);
                    for (const end of [low, high])
                        painter.rect(end - 0.75, y + line / 2 - 4, 1.5, 8, look.ink);
                }
                painter.text(left + span + 6, y + line * 0.68, value.toFixed(b.digits ?? 3), {
                    size: 11,
                    fill: look.dim,
                });
            });
            if (b.signed) painter.rect(zero - 0.5, 0, 1, b.words.length * line + 6, look.dim);
        },
        hit(x, y) {
            const i = Math.floor((y - 3) / line);
            return i >= 0 && i < b.words.length ? { i, j: 0 } : null;
        },
        describe: (i) =>
            `${b.words[i]}: ${exactText(b.values[i])}` +
            (b.intervals ? `, 95 % ${b.intervals[i].map(exactText).join(" to ")}` : ""),
        table: () => [
            ["", b.title, ...(b.intervals ? ["low", "high"] : [])],
            ...b.words.map((word, n) => [
                word,
                ...[b.values[n], ...(b.intervals?.[n] ?? [])].map(exactText),
            ]),
        ],
    };
}

// Words in a line: the width that they need, and their places in a line that is as long.
const LINE_WORD = 15,
    LINE_GAP = 14;

export function lineWidth(words) {
    return words.reduce((sum, word) => sum + textWidth(word, LINE_WORD) + LINE_GAP, 0);
}

export function lineUp(words, width) {
    const free = Math.max(0, width - lineWidth(words)) / words.length + LINE_GAP;
    let x = free / 2;
    return words.map((word) => {
        const own = textWidth(word, LINE_WORD);
        const middle = x + own / 2;
        x += own + free;
        return middle;
    });
}

// Columns above, rows below, a ribbon as wide as the weight; marks are what the grammar says.
export function ribbonsFigure(m) {
    const width = Math.max(m.room.width, lineWidth(m.rowWords), lineWidth(m.columnWords));
    const above = lineUp(m.columnWords, width),
        below = lineUp(m.rowWords, width);
    const y0 = 30,
        y1 = 270;
    const path = (i, j, at = 0) => [
        above[j] + at,
        y0 + 8,
        above[j] + at,
        y0 + 120,
        below[i] + at,
        y1 - 130,
        below[i] + at,
        y1 - 18,
    ];
    const weight = (i, j) => m.values[i * m.columns + j];
    return {
        ...m,
        width,
        height: y1 + 14,
        draw(painter, look, cursor) {
            const chosen = cursor?.i ?? m.selected;
            seriesOf(m, look, { thick: 15, room: 32 }).forEach(({ color, values, shift, thick }) =>
                eachCell(m, (i, j) => {
                    const a = values[i * m.columns + j] / m.most;
                    if (a < 0.02) return;
                    const fade = chosen >= 0 && chosen !== i ? 0.18 : 0.75;
                    const width = 1 + thick * a;
                    painter.curve(path(i, j, shift), color, width, fade * Math.min(1, 0.15 + a));
                }),
            );
            for (const [i, j] of m.marks ?? [])
                painter.curve(
                    path(i, j),
                    look.gold,
                    2,
                    chosen >= 0 && chosen !== i ? 0.35 : 1,
                    [5, 4],
                );
            m.columnWords.forEach((word, j) =>
                painter.text(above[j], y0, word, {
                    size: 15,
                    anchor: "middle",
                    fill: look.ink,
                    weight: chosen >= 0 && weight(chosen, j) / m.most > 0.2 ? 700 : 400,
                }),
            );
            m.rowWords.forEach((word, i) =>
                painter.text(below[i], y1, word, {
                    size: 15,
                    anchor: "middle",
                    fill: look.ink,
                    weight: chosen === i ? 700 : 400,
                }),
            );
            if (cursor) painter.rect(above[cursor.j] - 12, y0 + 4, 24, 2.5, look.accent);
        },
        hit(x, y) {
            const places = y > (y0 + y1) / 2 ? below : above;
            let best = 0;
            places.forEach((place, n) => {
                if (Math.abs(place - x) < Math.abs(places[best] - x)) best = n;
            });
            if (places === below) return { i: best, j: strongest(m, best) };
            return { i: strongestRow(m, best), j: best };
        },
        describe: (i, j) => describeSeries(m, i, j),
        table: () => matrixTable(m),
    };
}

function strongestRow(m, j) {
    let best = 0;
    for (let i = 1; i < m.rows; i++)
        if (m.values[i * m.columns + j] > m.values[best * m.columns + j]) best = i;
    return best;
}
