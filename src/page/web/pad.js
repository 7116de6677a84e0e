// SPDX-License-Identifier: MIT
// The 8 x 8 grid on which a pattern is drawn, to find heads with similar weights.
import { el } from "./dom.js";

export const PATTERN_SIZE = 8;

const PRESETS = {
    diagonal: (y, x) => x === y,
    previous: (y, x) => x === y - 1,
    next: (y, x) => x === y + 1,
    first: (_, x) => x === 0,
    end: (_, x) => x === PATTERN_SIZE - 1,
};

function pad(app, drawn) {
    const cells = Array.from({ length: PATTERN_SIZE * PATTERN_SIZE }, (_, n) =>
        el("button", {
            type: "button",
            id: `pad-${n}`,
            class: "pad-cell",
            "aria-pressed": String(drawn[n] > 0),
            "aria-label": `row ${Math.floor(n / PATTERN_SIZE) + 1}, column ${(n % PATTERN_SIZE) + 1}`,
            onpointerdown: () => paintCell(n),
            onpointerenter: (e) => e.buttons && paintCell(n),
            onkeydown: (e) => padKey(e, n),
        }),
    );
    function paintCell(n) {
        drawn[n] = drawn[n] > 0 ? 0 : 1;
        cells[n].setAttribute("aria-pressed", String(drawn[n] > 0));
        app.refreshCards();
    }
    function padKey(event, n) {
        const to = {
            ArrowUp: n - PATTERN_SIZE,
            ArrowDown: n + PATTERN_SIZE,
            ArrowLeft: n - 1,
            ArrowRight: n + 1,
        }[event.key];
        if (to !== undefined) cells[to]?.focus();
        else if (event.key === " " || event.key === "Enter") paintCell(n);
        else return;
        event.preventDefault();
        event.stopPropagation();
    }
    return el("div", { class: "pad", role: "group", "aria-label": "the pattern" }, cells);
}

export function drawPanel(app, drawn) {
    const fill = (shape) => {
        for (let n = 0; n < drawn.length; n++)
            drawn[n] = shape(Math.floor(n / PATTERN_SIZE), n % PATTERN_SIZE) ? 1 : 0;
        app.render();
    };
    return el(
        "div",
        { class: "draw" },
        pad(app, drawn),
        el(
            "div",
            {},
            el(
                "p",
                {},
                "Paint where a head should attend: rows are words that attend, columns ",
                "are words attended to. The most similar heads come first.",
            ),
            el(
                "div",
                { class: "chooser" },
                Object.entries(PRESETS).map(([name, shape]) =>
                    el(
                        "button",
                        {
                            type: "button",
                            id: `preset-${name}`,
                            onclick: () => fill(shape),
                        },
                        name,
                    ),
                ),
                el(
                    "button",
                    { type: "button", id: "preset-clear", onclick: () => fill(() => false) },
                    "clear",
                ),
            ),
        ),
    );
}
