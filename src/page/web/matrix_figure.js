// SPDX-License-Identifier: MIT
// A matrix of the view Compute as a figure: cells in colours, words at its rows, its shape in the
// title, numbers where there is room, lines between the parts of heads, and the row or column that
// the cell under the cursor of another matrix is made of.
import { exactText } from "./data.js";
import { colorBytes, inkOn } from "./color.js";
import { textWidth } from "./painter.js";

const WORD_SIZE = 12;
const WORD_GAP = 6;
const NUMBERS = 27; // width of a cell from which on it has its number
const TALL = 40; // rows from which on cells have no words

// The largest absolute value; at least a little, so that colours are defined.
export function largestSize(rows, columns, value) {
    let most = 1e-9;
    for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
            const size = Math.abs(value(i, j));
            if (size > most && Number.isFinite(size)) most = size;
        }
    return most;
}

function cellSizes(m, room, left) {
    if (m.cell) return { width: m.cell, height: m.cell };
    const tall = m.rows > TALL;
    const width = Math.min(tall ? 9 : 34, Math.max(1.5, (room - left) / m.columns));
    const height = tall ? Math.min(5, Math.max(1, (m.tall ?? 250) / m.rows)) : 19;
    return { width: width > 6 ? Math.floor(width) : width, height };
}

const shortNumber = (value) =>
    Math.abs(value) >= 99.5
        ? value.toFixed(0)
        : Math.abs(value) >= 9.95
          ? value.toFixed(1)
          : value.toFixed(2);

// A number in a cell, with a real minus sign.
export function cellText(value) {
    return shortNumber(value)
        .replace("-", "\u2212")
        .replace(/^(\u2212?)0\./, "$1.");
}

// m: {id, name, rows, columns, value(i, j), rowWords, columnWords, weights: from 0 to 1, hidden(i, j),
// cell: the width and height of a cell, tall: the height of many rows, bands: columns of a head,
// colors: of the bands, chosen: {from, to} of columns, summary, describe}.
// lit(): what is marked: {row, column}. room: pixels.
export function matrixFigure(m, room, lit) {
    const worded = m.rowWords && m.rows <= TALL;
    const left = worded
        ? 1.08 * Math.max(0, ...m.rowWords.map((word) => textWidth(word, WORD_SIZE))) + WORD_GAP
        : 1;
    const right = m.columnWords ? 36 : 4;
    const top = m.columnWords
        ? 0.75 * Math.max(0, ...m.columnWords.map((word) => textWidth(word, WORD_SIZE))) +
          WORD_GAP +
          10
        : m.colors
          ? 8
          : 2;
    const size = cellSizes(m, room - right, left);
    const grid = { width: m.columns * size.width, height: m.rows * size.height };
    const map = m.weights ? "sequential" : "diverging";
    const most = m.weights ? 1 : (m.most ?? largestSize(m.rows, m.columns, m.value));
    const share = (value) => (m.weights ? value : 0.5 + value / most / 2);
    const isHidden = (i, j) => m.hidden?.(i, j) ?? false;
    const images = {};

    function drawWords(painter, look, cursor) {
        const marked = lit();
        m.rowWords.forEach((word, i) => {
            const strong = cursor?.i === i || marked?.row === i;
            painter.text(left - WORD_GAP, (i + 0.5) * size.height + top + 4, word, {
                size: WORD_SIZE,
                anchor: "end",
                fill: strong ? look.ink : look.dim,
                weight: strong ? 650 : 400,
            });
        });
    }
    function drawColumnWords(painter, look, cursor) {
        const marked = lit();
        m.columnWords.forEach((word, j) => {
            const strong = cursor?.j === j || marked?.column === j;
            painter.text(left + (j + 0.5) * size.width + 4, top - WORD_GAP, word, {
                size: WORD_SIZE,
                rotate: -48,
                fill: strong ? look.ink : look.dim,
                weight: strong ? 650 : 400,
            });
        });
    }
    function drawNumbers(painter, look) {
        for (let i = 0; i < m.rows; i++)
            for (let j = 0; j < m.columns; j++)
                if (!isHidden(i, j))
                    painter.text(
                        left + (j + 0.5) * size.width,
                        top + (i + 0.5) * size.height + 3.5,
                        cellText(m.value(i, j)),
                        {
                            size: 9.5,
                            anchor: "middle",
                            fill: inkOn(look.theme, map, share(m.value(i, j))),
                        },
                    );
    }
    // The parts of heads: a line between two, and a bar in the colour of each.
    function drawBands(painter, look) {
        for (let n = 0; n * m.bands < m.columns; n++) {
            const x = left + n * m.bands * size.width;
            if (n > 0) painter.rect(x - 0.75, top, 1.5, grid.height, look.ground);
            if (m.colors)
                painter.rect(
                    x + 0.5,
                    0,
                    m.bands * size.width - 1,
                    5,
                    m.colors[n % m.colors.length],
                );
        }
    }
    function drawMarks(painter, look, cursor) {
        const marked = lit();
        const frame = (i, j, rows, columns, color) =>
            painter.frame(
                left + j * size.width,
                top + i * size.height,
                columns * size.width,
                rows * size.height,
                color,
                1.75,
            );
        if (m.chosen) frame(0, m.chosen.from, m.rows, m.chosen.to - m.chosen.from, look.accent);
        if (marked?.row !== undefined && marked.column !== undefined)
            frame(marked.row, marked.column, 1, 1, look.gold);
        else if (marked?.row !== undefined)
            frame(marked.row, marked.from ?? 0, 1, marked.count ?? m.columns, look.gold);
        else if (marked?.column !== undefined) frame(0, marked.column, m.rows, 1, look.gold);
        if (cursor) frame(cursor.i, cursor.j, 1, 1, look.ink);
    }

    return {
        name: `mha-${m.id}`,
        title: `${m.name}  ${m.rows} \u00d7 ${m.columns}`,
        summary: m.summary ?? "",
        rows: m.rows,
        columns: m.columns,
        width: left + grid.width + right,
        height: top + grid.height + 2,
        draw(painter, look, cursor) {
            painter.cells(
                left,
                top,
                size.width,
                size.height,
                m.rows,
                m.columns,
                (i, j) =>
                    isHidden(i, j)
                        ? look.masked
                        : colorBytes(look.theme, map, share(m.value(i, j))),
                images,
                look.theme,
            );
            if (m.bands) drawBands(painter, look);
            if (worded) drawWords(painter, look, cursor);
            if (m.columnWords) drawColumnWords(painter, look, cursor);
            if (size.width >= NUMBERS && m.rows <= TALL) drawNumbers(painter, look);
            drawMarks(painter, look, cursor);
        },
        hit(x, y) {
            const i = Math.floor((y - top) / size.height),
                j = Math.floor((x - left) / size.width);
            return i >= 0 && i < m.rows && j >= 0 && j < m.columns ? { i, j } : null;
        },
        describe: (i, j) => `${rowName(m, i)}, ${j + 1}: ${exactText(m.value(i, j))}`,
        table: () => [
            [
                "",
                ...Array.from({ length: m.columns }, (_, j) => m.columnWords?.[j] ?? String(j + 1)),
            ],
            ...Array.from({ length: m.rows }, (_, i) => [
                rowName(m, i),
                ...Array.from({ length: m.columns }, (__, j) =>
                    isHidden(i, j) ? "" : exactText(m.value(i, j)),
                ),
            ]),
        ],
    };
}

export function rowName(m, i) {
    return m.rowWords?.[i] ?? String(i + 1);
}
