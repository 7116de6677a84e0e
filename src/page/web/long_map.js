// SPDX-License-Identifier: MIT
// The map of a long text: a small map of all cells, and a close-up of a part with its words. A
// click, a drag or Enter on the small map moves the close-up.
import { arcsFigure, heatmapFigure, windowOf } from "./figures.js";
import { figureView } from "./figure_view.js";
import { el } from "./dom.js";

const PART_SIDE = 24; // words of the close-up

function partFigure(app, matrix, row, column) {
    const part = windowOf(matrix, row, column, PART_SIDE);
    const draw = app.state.form === "arcs" ? arcsFigure : heatmapFigure;
    return draw({
        ...part,
        name: `${matrix.name}-part`,
        title: "Close-up",
        summary:
            `Rows ${part.top + 1} to ${part.top + part.rows}, ` +
            `columns ${part.left + 1} to ${part.left + part.columns}; choose a cell to move there.`,
        frame: null,
        room: { width: app.width(), height: 620 },
    });
}

// onrow(i): a row to look at; onchoose(i, j): a cell is chosen.
export function longMap(app, matrix, { onrow, onchoose }) {
    const place = { row: Math.max(0, app.state.row), column: Math.max(0, app.state.column) };
    let figure = partFigure(app, matrix, place.row, place.column);
    const frame = {};
    const setFrame = () =>
        Object.assign(frame, {
            top: figure.top,
            left: figure.left,
            rows: figure.rows,
            columns: figure.columns,
        });
    setFrame();
    function move(i, j) {
        figure = partFigure(app, { ...matrix, selected: i }, i, j);
        setFrame();
        part.redraw(figure);
        main.redraw();
        onchoose(i, j);
    }
    const main = figureView(heatmapFigure({ ...matrix, frame }), {
        id: "main",
        hint: "Point at a cell; click or drag to move the close-up.",
        onmove: onrow,
        onchoose: move,
        drag: true,
    });
    const part = figureView(figure, {
        id: "part",
        hint: "Point at a cell, or move with the arrow keys.",
        onmove: (i) => onrow(figure.top + i),
        onchoose: (i, j) => move(figure.top + i, figure.left + j),
    });
    return { canvas: main.canvas, element: el("div", {}, main.element, part.element) };
}
