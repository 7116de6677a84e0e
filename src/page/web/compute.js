// SPDX-License-Identifier: MIT
// The Compute view: one attention step by step, from words to output, with the numbers of the model.
// Next, back and play move through the steps; every cell explains itself.
import { computationOf } from "./compute_data.js";
import { inUnits } from "./picture.js";
import { contextOf, resultText, STEP_WORDS, stepsOf } from "./compute_steps.js";
import { matrixFigure } from "./matrix_figure.js";
import { headColor, headsChooser } from "./several.js";
import { figureView } from "./figure_view.js";
import { el, released } from "./dom.js";

const PLAY_PAUSE = 3500; // milliseconds
let playing = 0;

export function stopPlaying() {
    clearInterval(playing);
    playing = 0;
}

// The chosen step among the functions of stepsOf(), made.
function chosenStep(t, app) {
    const all = stepsOf(t).map((make) => make(t));
    const index = Math.max(
        0,
        all.findIndex(({ name }) => name === app.state.step),
    );
    return { steps: all, index };
}

// Moves by one step; false: there is none.
export function moveStep(app, by) {
    const c = computationOf(app);
    if (!c || c instanceof Promise) return false;
    const { steps, index } = chosenStep(contextOf(app, c), app);
    const next = steps[index + by];
    if (!next) return false;
    app.set({ step: next.name });
    return true;
}

export function togglePlay(app) {
    if (playing) stopPlaying();
    else
        playing = setInterval(() => {
            if (app.state.view !== "compute" || !moveStep(app, 1)) {
                stopPlaying();
                app.render();
            }
        }, PLAY_PAUSE);
    app.render();
}

// -------------------------------------------------------------- controls -----

function stepBar(app, steps, index) {
    const move = (id, text, by, disabled) =>
        el("button", { type: "button", id, disabled, onclick: () => moveStep(app, by) }, text);
    return el(
        "div",
        { class: "bar step-bar" },
        move("step-back", "\u2190 Back", -1, index === 0),
        move("step-next", "Next \u2192", 1, index === steps.length - 1),
        el(
            "button",
            {
                type: "button",
                id: "step-play",
                "aria-pressed": String(playing !== 0),
                disabled: index === steps.length - 1 && !playing,
                onclick: () => togglePlay(app),
            },
            playing ? "Stop" : "Play",
        ),
        el(
            "ol",
            { class: "step-list", "aria-label": "Steps" },
            steps.map(({ name, title }, n) =>
                el(
                    "li",
                    {},
                    el(
                        "button",
                        {
                            type: "button",
                            id: `step-${name}`,
                            title,
                            "aria-current": n === index ? "step" : null,
                            onclick: () => app.set({ step: name }),
                        },
                        `${n + 1} ${inUnits(app, STEP_WORDS[name])}`,
                    ),
                ),
            ),
        ),
    );
}

// --------------------------------------------------------------- diagram -----

// Input, heads, concat, linear: every box is a step.
function diagram(app, t) {
    const box = (id, name, shape, step, patch = {}, color = null) =>
        el(
            "button",
            {
                type: "button",
                class: "box",
                id: `box-${id}`,
                style: color ? `--head:${color}` : null,
                onclick: () => app.set({ step, ...patch }),
            },
            el("b", {}, name),
            el("span", {}, shape),
        );
    const arrow = () => el("span", { class: "arrow", "aria-hidden": "true" }, "\u2192");
    const { c, D, E, H } = t;
    const first = c.stream ? "input" : "project";
    return el(
        "div",
        { class: "diagram", role: "group", "aria-label": "Input, heads, concat, linear" },
        el(
            "div",
            { class: "column" },
            box("input", t.cross ? "Input (queries)" : "Input", `${c.rows} \u00d7 ${E}`, first),
            t.cross
                ? box("memory", "Memory (keys, values)", `${c.columns} \u00d7 ${E}`, "project")
                : null,
        ),
        arrow(),
        el(
            "div",
            { class: "column heads" },
            t.heads.map((head) =>
                box(
                    `head-${head.head}`,
                    `Head ${head.head}`,
                    `Q K V: ${E} \u2192 ${D};  out ${c.rows} \u00d7 ${D}`,
                    "project",
                    { head: head.head },
                    headColor(head.head),
                ),
            ),
        ),
        arrow(),
        el(
            "div",
            { class: "column" },
            box("concat", "Concat", `${c.rows} \u00d7 ${H * D}`, "join"),
        ),
        arrow(),
        el(
            "div",
            { class: "column" },
            box("linear", "Linear: W_O", `${H * D} \u00d7 ${E}`, "output"),
        ),
        arrow(),
        el(
            "div",
            { class: "column" },
            box("output", "Output", `${c.rows} \u00d7 ${E}`, c.joined ? "residual" : "output"),
        ),
    );
}

// ------------------------------------------------------------- equations -----

const WIDE_COLUMNS = 48;

// Beside a wide matrix the others get what they need.
function narrowRoom({ rows, columns }) {
    return rows > WIDE_COLUMNS ? 9 * columns + 10 : 16 * columns + 90;
}

// The width of a matrix: strips are narrow, the rest share the room by how many columns they have.
function roomFor(m, equation, width) {
    const matrices = equation.filter((part) => typeof part !== "string" && !part.absent);
    if (m.strip)
        return (
            (m.rowWords ? 70 : 0) +
            Math.max(64, Math.min(190, (width - 110) / matrices.length - 34))
        );
    if (width < 700) return width - 8;
    const others = matrices.filter((other) => other !== m);
    if (m.columns > WIDE_COLUMNS) {
        const taken = others.reduce(
            (sum, other) => sum + (other.columns > WIDE_COLUMNS ? 0 : narrowRoom(other)),
            0,
        );
        const wide =
            matrices.length - others.filter(({ columns }) => columns <= WIDE_COLUMNS).length;
        const signs = equation.filter((part) => typeof part === "string").length;
        return Math.max(240, (width - 46 * signs - taken) / wide);
    }
    return others.some(({ columns }) => columns > WIDE_COLUMNS)
        ? narrowRoom(m)
        : Math.max(150, Math.min(760, (width - 44 * others.length) / matrices.length));
}

function absentBox({ name, rows, columns }) {
    return el(
        "div",
        { class: "absent" },
        el("h3", {}, `${name}  ${rows} \u00d7 ${columns}`),
        el("p", { class: "hint" }, "not in this page"),
    );
}

// The cell that was explained last: {place, id, i, j}. It is explained again when the numbers of the
// same step change.
let reading = null;

function readingPlace(app, step) {
    return JSON.stringify([app.state.kind, step.name, app.sentence().text]);
}

// The figures of a step, and the room below them in which the cell under the cursor is explained.
export function equationsView(app, step) {
    const place = readingPlace(app, step);
    const panel = el("output", { class: "explain idle", id: "explain", "aria-live": "polite" });
    const hint = "Point at a cell, or move to it with the arrow keys, to see how it is computed.";
    panel.append(el("p", { class: "hint" }, hint));
    const views = new Map();
    let lit = {};
    function explain(m, i, j) {
        reading = { place, id: m.id, i, j };
        const { lines, result, lit: next, computed } = m.explain(i, j);
        lit = next;
        panel.classList.remove("idle");
        panel.replaceChildren(
            ...lines.map((line) => el("p", { class: "formula" }, line)),
            el(
                "p",
                { class: "formula" },
                computed ? "computed by the page: " : "the model\u2019s value: ",
                el("b", { id: "explain-value" }, resultText(result)),
            ),
        );
        for (const [id, view] of views) if (id !== m.id) view.redraw();
    }
    const last = step.equations.at(-1)?.at(-1);
    const width = app.width();
    const rows = step.equations.map((equation) =>
        el(
            "div",
            { class: "equation" },
            equation.map((part) => {
                if (typeof part === "string")
                    return el("span", { class: "operator", "aria-hidden": "true" }, part);
                if (part.absent) return absentBox(part);
                const figure = matrixFigure(
                    part,
                    roomFor(part, equation, width),
                    () => lit[part.id],
                );
                const view = figureView(figure, {
                    id: `m-${part.id}`,
                    plain: part !== last,
                    onmove: (i, j) => explain(part, i, j),
                });
                views.set(part.id, view);
                return view.element;
            }),
        ),
    );
    const kept =
        reading?.place === place
            ? step.equations.flat().find(({ id, absent }) => id === reading.id && !absent)
            : undefined;
    if (kept && reading.i < kept.rows && reading.j < kept.columns)
        explain(kept, reading.i, reading.j);
    return el("div", { class: "equations" }, rows, panel);
}

// ------------------------------------------------------------------ view -----

function whyMessage(text) {
    return el("p", { id: "compute-message" }, text);
}

function message(text) {
    return el("div", { class: "compute" }, whyMessage(text));
}

function whyNot(app) {
    const { matrices, sentences } = app.tokens;
    const { steps } = sentences[app.state.sentence];
    if (!app.tokens.model)
        return "This page was made from a file of weights: the computation around them is not known.";
    const own = steps?.find(({ kind }) => kind === app.state.kind);
    if (own)
        return `This page has the steps of layer ${own.layer} of the ${own.kind}: choose it, make a page with \u201c--layer ${app.state.layer}\u201d, or use \u201cmha serve\u201d, which has all layers.`;
    return matrices?.length
        ? inUnits(app, "The text is too long for a page with its steps.")
        : "This page was made without steps: make it again without \u201c--layer 0\u201d.";
}

// What is shown: {key, element}. It stays until other numbers of the same attention are there.
let shown = null;

function shownKey(app) {
    const { kind, layer, step } = app.state;
    return JSON.stringify([kind, layer, step, app.sentence().text]);
}

function waitFor(app, promise) {
    promise.then(released).then(
        () => app.state.view === "compute" && app.render(),
        (error) => {
            shown = null;
            document
                .querySelector(".compute")
                ?.replaceChildren(whyMessage(`The steps could not be had: ${error.message}`));
        },
    );
    if (shown?.key !== shownKey(app)) return message("The steps are being computed \u2026");
    shown.element.setAttribute("aria-busy", "true");
    return shown.element;
}

export function computeView(app) {
    const c = computationOf(app);
    if (c instanceof Promise) return waitFor(app, c);
    if (!c) return message(whyNot(app));
    shown = { key: shownKey(app), element: stepView(app, c) };
    return shown.element;
}

function stepView(app, c) {
    const t = contextOf(app, c);
    const { steps, index } = chosenStep(t, app);
    const step = steps[index];
    const some = step.name === "join" || step.name === "output";
    return el(
        "div",
        { class: "compute" },
        stepBar(app, steps, index),
        el("h2", { id: "step-title" }, inUnits(app, step.title)),
        el("p", { class: "prose" }, inUnits(app, step.text)),
        el("p", { class: "formula big" }, step.formula),
        some ? headsChooser(app, t.H, t.chosen, "Heads that are joined") : null,
        step.diagram ? diagram(app, t) : equationsView(app, step),
        t.kind === "decoder" && index === steps.length - 1 && app.tokens.model.translates
            ? el(
                  "p",
                  { class: "hint" },
                  "Cross-attention of the same layer comes next, then the feed-forward.",
              )
            : null,
    );
}
