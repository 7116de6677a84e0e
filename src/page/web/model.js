// SPDX-License-Identifier: MIT
// The Model view: all kinds, layers and heads of the model on one sheet, as wide as the window.
import { headName, KIND_WORDS } from "./data.js";
import { drawsWhenSeen, moveFocus } from "./wall.js";
import { legend, roleBadge } from "./legend.js";
import { changeOf } from "./live.js";
import { el } from "./dom.js";
import { inUnits } from "./picture.js";

const KIND_TEXTS = {
    encoder: "every source word looks at all source words",
    decoder: "every word looks at itself and at the words before it",
    cross: "every word of the translation looks at the source",
};

function kindText(app, name) {
    const { picture, target } = app.sentence();
    if (picture && !target) return "every patch looks at all patches; each picture is one head";
    if (picture && name === "encoder") return "every patch looks at all patches";
    return picture && name === "cross"
        ? "every word looks at the picture"
        : KIND_TEXTS[name];
}

function sheetCell(app, { head, role }, draws) {
    const canvas = el("canvas", { class: "thumb", "aria-hidden": "true" });
    draws(canvas, head);
    const closed = app.live && changeOf(app.live.closed, head) !== "";
    return el(
        "button",
        {
            type: "button",
            class: closed ? "card sheet-cell changed" : "card sheet-cell",
            id: `sheet-${head.kind}-${head.layer}-${head.head}`,
            title: `${headName(head)}: ${role.words}`,
            onclick: () =>
                app.set({ view: "head", kind: head.kind, layer: head.layer, head: head.head }),
        },
        canvas,
        el(
            "span",
            { class: "card-head" },
            el("span", { class: "hidden" }, `${head.kind} `),
            `${head.layer}.${head.head}`,
            roleBadge(role, ""),
            el("span", { class: "hidden" }, role.words),
        ),
    );
}

function kindSheet(app, { name, layers, heads }, draws) {
    const items = app.items(name);
    return el(
        "section",
        { class: "sheet-kind", style: `--heads:${heads}`, "aria-labelledby": `sheet-${name}` },
        el("h2", { id: `sheet-${name}` }, `${KIND_WORDS[name]}: ${layers} \u00d7 ${heads} heads`),
        el("p", { class: "hint" }, kindText(app, name)),
        el(
            "div",
            { class: "sheet-grid" },
            items.map((item) => sheetCell(app, item, draws)),
        ),
    );
}

export function modelView(app) {
    const { kinds } = app.sentence(),
        draws = drawsWhenSeen();
    const heads = kinds.reduce((sum, kind) => sum + kind.layers * kind.heads, 0);
    return el(
        "div",
        {},
        el(
            "p",
            { class: "hint" },
            `All ${heads} heads on this sentence; layers from top to bottom, heads from left to right. `,
            inUnits(app, "Choose one to see its words."),
        ),
        legend(
            app,
            kinds.flatMap(({ name }) => app.items(name)),
        ),
        el(
            "div",
            {
                class: "sheet",
                style: `--heads:${Math.max(...kinds.map((kind) => kind.heads))}`,
                onkeydown: moveFocus,
            },
            kinds.map((kind) => kindSheet(app, kind, draws)),
        ),
    );
}
