// SPDX-License-Identifier: MIT
// The wall: all heads of a kind, each a small picture with its role, spread and worth.
import { headName } from "./data.js";
import { cosine, pattern } from "./metrics.js";
import { parseQuery, QUERY_FIELDS, sortItems } from "./query.js";
import { colorBytes } from "./color.js";
import { chooser, el, picker } from "./dom.js";
import { currentLook, thumbnail } from "./figure_view.js";
import { liveCard, liveLabel } from "./live.js";

const PATTERN_SIZE = 8;
const SORT_WORDS = [
    ["layer", "Layer and head"],
    ["role", "Role"],
    ["entropy", "Sharpest first"],
    ["loss", "Most needed first"],
];

export function roleBadge(role, name = role.role) {
    return el(
        "span",
        { class: `badge role-${role.rule}`, title: role.words },
        el("b", { "aria-hidden": "true" }, role.letter),
        name,
    );
}

// What it comes nearest to, where it has no role.
function scoreText({ role, score, runner }) {
    if (score === null) return `nearest: ${runner.role} ${runner.score.toFixed(2)}`;
    return `${role} ${score.toFixed(2)}`;
}

export function signedText(value) {
    return `${value >= 0 ? "+" : "\u2212"}${Math.abs(value).toFixed(2)}`;
}

export function lossText(head) {
    const words = head.changed.length;
    const change =
        words === 0
            ? "no word changes"
            : words === 1
              ? "one word changes"
              : `${words} words change`;
    return `closed: ${signedText(head.loss)} nats, ${change}`;
}

function meter(label, share, text) {
    return el(
        "span",
        { class: "meter", title: `${label}: ${text}` },
        el("i", { style: `width:${Math.round(100 * Math.min(1, Math.max(0, share)))}%` }),
    );
}

// How far closed heads make it look elsewhere.
function movedMeter(app, head) {
    if (!app.live?.closed) return null;
    const { shift } = app.live.shift(head);
    return [el("span", {}, "moved"), meter("moved", shift, shift.toFixed(3))];
}

function cardLabel(app, { head, metrics, role }) {
    const { entropy, entropyMost } = metrics;
    return (
        `Layer ${head.layer} head ${head.head}: ${role.words}, ${scoreText(role)}; ` +
        `entropy ${entropy.toFixed(2)} of ${entropyMost.toFixed(2)} nats; ${lossText(head)}${liveLabel(app, head)}`
    );
}

function card(app, item, mostLoss, likeness) {
    const { head, metrics, role } = item;
    const canvas = el("canvas", { class: "thumb", "aria-hidden": "true" });
    const look = currentLook();
    thumbnail(canvas, head, (i, j) =>
        head.causal && j > i
            ? look.masked
            : colorBytes(look.theme, "sequential", head.weights[i * head.columns + j]),
    );
    return el(
        "button",
        {
            type: "button",
            class: "card",
            id: `card-${head.layer}-${head.head}`,
            "aria-label": cardLabel(app, item),
            onclick: () => app.set({ view: "head", layer: head.layer, head: head.head }),
        },
        el("span", { class: "card-head" }, el("b", {}, headName(head)), roleBadge(role, "")),
        canvas,
        el(
            "span",
            { class: "score" },
            likeness === undefined ? scoreText(role) : `like the drawing: ${likeness.toFixed(2)}`,
        ),
        el(
            "span",
            { class: "meters" },
            el("span", {}, "spread"),
            meter("spread", metrics.spread, metrics.entropy.toFixed(2)),
            el("span", {}, "worth"),
            meter("worth", head.loss / mostLoss, lossText(head)),
            movedMeter(app, head),
        ),
    );
}

// Arrow keys go from card to card as they lie on the screen.
function moveFocus(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
        event.key
    ];
    if (!step || !event.target.classList.contains("card")) return;
    const from = event.target.getBoundingClientRect();
    let best = null,
        nearest = Infinity;
    for (const other of event.currentTarget.querySelectorAll(".card")) {
        const box = other.getBoundingClientRect();
        const x = box.left - from.left,
            y = box.top - from.top;
        const along = x * step[0] + y * step[1];
        const aside = Math.abs(x * step[1]) + Math.abs(y * step[0]);
        if (along > 4 && along + 4 * aside < nearest) {
            nearest = along + 4 * aside;
            best = other;
        }
    }
    best?.focus();
    event.preventDefault();
}

// --------------------------------------------------------- a drawn pattern -----

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

function drawPanel(app, drawn) {
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
                "Paint where a head should look: rows are words that look, columns ",
                "words looked at. The heads most like it come first.",
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

// ------------------------------------------------------------------- view -----

const drawn = new Float64Array(PATTERN_SIZE * PATTERN_SIZE);
let drawing = false;

// The items of the query, in their order; {items, likeness, message}. likeness: of each item to the
// drawing, if there is one.
function chosenItems(app) {
    const all = app.items();
    const likeness = new Map();
    try {
        const { test, like } = parseQuery(app.state.find, all);
        const items = sortItems(all.filter(test), app.state.sort, like);
        if (drawing && drawn.some((value) => value > 0)) {
            for (const item of items)
                likeness.set(item, cosine(pattern(item.head, PATTERN_SIZE), drawn));
            items.sort((a, b) => likeness.get(b) - likeness.get(a));
        }
        return { items, likeness, message: `${items.length} of ${all.length} heads` };
    } catch (error) {
        return { items: [], likeness, message: error.message };
    }
}

function inLayers(app) {
    return app.state.sort === "layer" && app.state.find === "" && !drawing;
}

export function wallView(app) {
    const grid = el("div", { class: "wall", onkeydown: moveFocus });
    const message = el("output", { class: "readout", id: "wall-message", "aria-live": "polite" });
    const find = el("input", {
        id: "find",
        type: "search",
        value: app.state.find,
        spellcheck: "false",
        placeholder: "previous   prev>0.9 layer<2   like L2H3   attends(cat -> the)>0.4",
        "aria-describedby": "find-help",
        oninput: (event) => {
            app.note({ find: event.target.value });
            app.refreshCards();
        },
    });

    app.refreshCards = () => {
        const chosen = chosenItems(app);
        const mostLoss = Math.max(0.05, ...app.items().map(({ head }) => head.loss));
        message.textContent = chosen.message;
        grid.classList.toggle("layers", inLayers(app));
        grid.style.setProperty("--heads", Math.max(...app.items().map(({ head }) => head.head)));
        grid.replaceChildren(
            ...chosen.items.map((item) =>
                liveCard(app, item, card(app, item, mostLoss, chosen.likeness.get(item))),
            ),
        );
    };
    app.refreshCards();
    return el(
        "div",
        {},
        el(
            "div",
            { class: "bar" },
            el("label", { class: "grow" }, el("span", { class: "hidden" }, "Find heads"), find),
            picker("sort", "Sort", SORT_WORDS, app.state.sort, (sort) => app.set({ sort })),
            chooser(
                "draw",
                "Find by a drawn pattern",
                { toggle: "Draw a pattern" },
                drawing ? "toggle" : "",
                () => {
                    drawing = !drawing;
                    app.render();
                },
            ),
        ),
        el(
            "p",
            { id: "find-help", class: "hint" },
            "Roles by name, or numbers: ",
            QUERY_FIELDS.join(", "),
            ".",
        ),
        drawing ? drawPanel(app, drawn) : null,
        message,
        el(
            "p",
            { class: "hint" },
            "Each picture is one head: a row for every word that looks, a column ",
            "for every word looked at, stronger where it looks more. Choose one to see its words.",
        ),
        grid,
    );
}
