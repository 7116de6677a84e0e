// SPDX-License-Identifier: MIT
// The logit lens of an experiment: what each layer of the decoder would say if none came after it.
// src/heads/logit_lens.h says what is computed.
import { percentText } from "./study_data.js";
import { el } from "./dom.js";

function lensCell({ likely, expected }, row) {
    const [best] = likely;
    const list = likely.map(({ word, p }) => `${word} ${percentText(Math.log(p))}`).join(", ");
    const own = row.word === undefined ? "" : `; ${row.word} itself: ${percentText(expected)}`;
    return el(
        "td",
        {
            class: best.number === row.number ? "lens-cell right" : "lens-cell",
            style: `--chance:${best.p.toFixed(3)}`,
            title: `${list}${own}`,
        },
        el("span", { class: "lens-word" }, best.word),
        " ",
        el("small", {}, percentText(Math.log(best.p))),
    );
}

export function lensPart(app, { lens, rows, no_lens: reason }) {
    if (reason) return el("p", { class: "hint", id: "no-lens" }, `Logit lens: ${reason}`);
    if (!lens) return null;
    const levels = lens[0].map((_, level) => (level === 0 ? "embedding" : `layer ${level}`));
    return el(
        "section",
        { id: "study-lens", "aria-labelledby": "study-lens-title" },
        el("h2", { id: "study-lens-title" }, "Logit lens: what each layer would say"),
        el(
            "p",
            { class: "hint" },
            "The likeliest word of each row, if no layer came after this one: its stream through the last ",
            "norm, if the model has one, and the output matrix. The last column is the model\u2019s output. ",
            "Bold: the word that the row says. Pointing shows three words.",
        ),
        el(
            "div",
            { class: "scroll", tabindex: 0, role: "region", "aria-label": "Logit lens" },
            el(
                "table",
                { class: "study-words lens" },
                el(
                    "thead",
                    {},
                    el(
                        "tr",
                        {},
                        ["says", ...levels].map((title) => el("th", { scope: "col" }, title)),
                    ),
                ),
                el(
                    "tbody",
                    {},
                    rows.map((row, n) =>
                        el(
                            "tr",
                            { class: n === app.state.said ? "chosen" : null },
                            el("th", { scope: "row" }, row.word ?? "\u2026"),
                            lens[n].map((cell) => lensCell(cell, row)),
                        ),
                    ),
                ),
            ),
        ),
    );
}
