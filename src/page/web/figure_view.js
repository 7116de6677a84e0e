// SPDX-License-Identifier: MIT
// A figure of figures.js on the page: canvas, cursor by mouse and keys, value as text, table, and
// files to save. A figure wider than the page scrolls within its own frame.
import { CanvasPainter, SvgPainter } from "./painter.js";
import { download, el, tableElement } from "./dom.js";

// The colours of the theme, read from the style sheet.
export function currentLook() {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(`--${name}`).trim();
    return {
        theme: document.documentElement.dataset.theme,
        ink: named("ink"),
        dim: named("dim"),
        faint: named("faint"),
        ground: named("ground"),
        accent: named("accent"),
        gold: named("gold"),
        soft: named("soft"),
        masked: named("masked").split(" ").map(Number),
    };
}

export function figureCsv(figure) {
    const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    return figure
        .table()
        .map((row) => `${row.map(quote).join(",")}\n`)
        .join("");
}

export function figureSvg(figure, look, cursor) {
    const painter = new SvgPainter();
    painter.rect(0, 0, figure.width, figure.height, look.ground);
    figure.draw(painter, look, cursor);
    return painter.finish(figure.width, figure.height, `${figure.title}: ${figure.summary}`);
}

function paint(canvas, figure, cursor, scale) {
    canvas.width = Math.ceil(figure.width * scale);
    canvas.height = Math.ceil(figure.height * scale);
    const context = canvas.getContext("2d");
    const look = currentLook();
    context.scale(scale, scale);
    const painter = new CanvasPainter(context);
    painter.rect(0, 0, figure.width, figure.height, look.ground);
    figure.draw(painter, look, cursor);
}

function savePng(figure, cursor) {
    const canvas = document.createElement("canvas");
    paint(canvas, figure, cursor, 2);
    canvas.toBlob((blob) => download(`${figure.name}.png`, blob), "image/png");
}

function moved(figure, cursor, key) {
    const { i, j } = cursor ?? { i: 0, j: 0 };
    const inRange = (n, count) => Math.min(count - 1, Math.max(0, n));
    const steps = {
        ArrowUp: [-1, 0],
        ArrowDown: [1, 0],
        ArrowLeft: [0, -1],
        ArrowRight: [0, 1],
        Home: [0, -figure.columns],
        End: [0, figure.columns],
        PageUp: [-figure.rows, 0],
        PageDown: [figure.rows, 0],
    };
    if (!(key in steps)) return null;
    if (!cursor) return { i, j };
    return {
        i: inRange(i + steps[key][0], figure.rows),
        j: inRange(j + steps[key][1], figure.columns),
    };
}

// The figures of the page by id: {canvas, shape(), cursor(), moveTo(place)}.
const figures = new Map();

// Where the cursors of figures are, for restoreCursors() after the page was made again.
export function figureCursors() {
    return [...figures]
        .filter(([, { canvas, cursor }]) => canvas.isConnected && cursor())
        .map(([id, { shape, cursor }]) => ({ id, shape: shape(), place: cursor() }));
}

// Figures that still have the same rows and columns get their cursors back.
export function restoreCursors(cursors) {
    for (const { id, shape, place } of cursors) {
        const figure = figures.get(id);
        if (figure.canvas.isConnected && figure.shape() === shape) figure.moveTo(place);
    }
    for (const [id, { canvas }] of figures) if (!canvas.isConnected) figures.delete(id);
}

// Larger tables would be slow to lay out; the CSV has all cells.
const TABLE_CELLS = 20000;

// Returns {element, redraw(figure), cursor}. options: id, cursor, hint, onmove(i, j),
// onchoose(i, j), drag: moving the pressed mouse chooses too, plain: only title and figure, if the
// view around it says the values.
export function figureView(figure, options) {
    let cursor = options.cursor ?? null;
    let shown = figure;
    const canvas = el("canvas", {
        id: options.id,
        tabindex: 0,
        role: "application",
        "aria-roledescription": "figure, moved in with the arrow keys",
    });
    const readout = el("output", {
        class: "readout",
        "aria-live": "polite",
        id: `${options.id}-value`,
    });
    const tableRoom = el("div", {});
    const caption = el("figcaption", {});
    const heading = el("h3", {});

    function draw() {
        paint(canvas, shown, cursor, window.devicePixelRatio || 1);
        canvas.style.width = `${shown.width}px`;
        canvas.style.height = `${shown.height}px`;
        canvas.setAttribute("aria-label", `${shown.title}. ${shown.summary}`);
        heading.textContent = shown.title;
        caption.textContent = shown.summary;
        readout.textContent = cursor ? shown.describe(cursor.i, cursor.j) : (options.hint ?? "");
    }

    function moveTo(place) {
        cursor = place;
        draw();
        if (place) options.onmove?.(place.i, place.j);
    }

    function placeOf(event) {
        const box = canvas.getBoundingClientRect();
        return shown.hit(event.clientX - box.left, event.clientY - box.top);
    }

    canvas.addEventListener("mousemove", (event) => {
        const place = placeOf(event);
        if (place?.i === cursor?.i && place?.j === cursor?.j) return;
        moveTo(place);
        if (options.drag && place && event.buttons & 1) options.onchoose?.(place.i, place.j);
    });
    canvas.addEventListener("mouseleave", () => moveTo(null));
    canvas.addEventListener("click", (event) => {
        const place = placeOf(event);
        if (place) options.onchoose?.(place.i, place.j);
    });
    canvas.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const place = moved(shown, cursor, event.key);
        if (place) moveTo(place);
        else if (event.key === "Enter" && cursor) options.onchoose?.(cursor.i, cursor.j);
        else return;
        event.preventDefault();
    });
    canvas.addEventListener("blur", () => moveTo(null));

    const tableButton = el(
        "button",
        {
            type: "button",
            id: `${options.id}-table`,
            "aria-expanded": "false",
            onclick: toggleTable,
        },
        "Table",
    );
    function toggleTable() {
        const open = tableRoom.childElementCount === 0;
        tableRoom.replaceChildren(...(open ? [tableElement(shown.table(), shown.title)] : []));
        tableButton.setAttribute("aria-expanded", String(open));
    }

    const save = (kind, act) =>
        el(
            "button",
            {
                type: "button",
                id: `${options.id}-${kind}`,
                title: `Save this figure as ${kind.toUpperCase()}`,
                onclick: act,
            },
            kind.toUpperCase(),
        );
    const element = el(
        "figure",
        { class: options.plain ? "plain" : null },
        el(
            "div",
            { class: "figure-head" },
            heading,
            options.plain
                ? null
                : el(
                      "div",
                      { class: "saves" },
                      figure.rows * figure.columns <= TABLE_CELLS ? tableButton : null,
                      save("svg", () =>
                          download(
                              `${shown.name}.svg`,
                              new Blob([figureSvg(shown, currentLook(), null)], {
                                  type: "image/svg+xml",
                              }),
                          ),
                      ),
                      save("png", () => savePng(shown, null)),
                      save("csv", () =>
                          download(
                              `${shown.name}.csv`,
                              new Blob([figureCsv(shown)], { type: "text/csv" }),
                          ),
                      ),
                  ),
        ),
        options.plain ? null : readout,
        el("div", { class: "scroll" }, canvas),
        caption,
        tableRoom,
    );
    draw();
    figures.set(options.id, {
        canvas,
        shape: () => `${shown.rows} ${shown.columns}`,
        cursor: () => cursor,
        moveTo,
    });
    return {
        element,
        canvas,
        redraw(next) {
            shown = next ?? shown;
            draw();
        },
        get cursor() {
            return cursor;
        },
    };
}

// A picture of a head on the wall, without words.
export function thumbnail(canvas, { rows, columns }, bytesOf) {
    const scale = window.devicePixelRatio || 1;
    const side = 112;
    canvas.width = canvas.height = side * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const painter = new CanvasPainter(context);
    painter.cells(0, 0, side / columns, side / rows, rows, columns, bytesOf, {}, "");
}
