// SPDX-License-Identifier: MIT
// The first screen: one sentence that says what this is, a small map of the model, heads that differ
// from each other, sentences to try, and what the model cannot do.
import { headName, KIND_WORDS } from "./data.js";
import { drawsWhenSeen } from "./wall.js";
import { roleBadge } from "./legend.js";
import { el } from "./dom.js";

const DIFFERENT_HEADS = 6;

// Sentences that show something; the laboratory's are of its grammar.
const LABORATORY_CHIPS = [
    "the cat that i saw yesterday ran away",
    "the small black cats sleep",
    "our aunt will be lazy tomorrow",
    "the girl saw her mother",
    "does the old king sing ?",
    "i bought the red apples",
    "the quick brown fox jumps",
];
const ENGLISH_CHIPS = [
    "The cat that I saw yesterday ran away.",
    "The quick brown fox jumps.",
    "She gave him the book because he asked.",
    "I have never seen such a big house.",
    "Where did you put the keys?",
];

function whatThisIs(app) {
    const { model } = app.page;
    if (!model) return "This page shows what every attention head in a file of weights looks at.";
    if (model.reads === "pictures")
        return "This page shows what every attention head of a model looks at on the picture above, which it reads as a row of patches.";
    if (model.translates)
        return "This page shows what every attention head of a translation model looks at while it reads the sentence above and writes its translation.";
    return model.predicts
        ? "This page shows what every attention head of a language model looks at while it reads the text above and predicts each next token."
        : "This page shows what every attention head of a model looks at while it reads the text above and makes one vector of it.";
}

function limits(app) {
    const { model, sentences } = app.page;
    if (!model) return null;
    if (model.reads === "pictures" && sentences[0].target)
        return sentences[0].boxes
            ? "The model finds shapes: each query looks at the picture and says what it sees, where, and how sure it is."
            : "The model says what is in the picture, the likeliest word at a time; it has learnt scenes of coloured shapes and knows no others.";
    if (model.reads === "pictures")
        return sentences[0].probabilities
            ? "The model says one of the classes that it was trained on, whatever the picture shows; the probabilities above are its own."
            : "The model says nothing: it turns a picture into one vector.";
    if (model.family === "translator")
        return "The model is a laboratory: small enough to compute everything, and it knows only the words and sentences of its own grammar. What is outside is marked.";
    if (model.translates)
        return "The model is small: names, idioms and long sentences often go wrong. Words that it finds unlikely are marked.";
    return sentences[0].expected
        ? "Each token is predicted from those before it; the text is given, not written by the model."
        : "The model writes nothing: it turns a text into one vector.";
}

// ------------------------------------------------------------------- map -----

function mapBox(app, kind, layer) {
    return el(
        "button",
        {
            type: "button",
            class: "box",
            id: `map-${kind.name}-${layer}`,
            "aria-current":
                app.state.kind === kind.name && app.state.layer === layer ? "true" : null,
            onclick: () =>
                app.set({ view: "wall", kind: kind.name, layer, find: `layer=${layer}` }),
        },
        el("b", {}, `${KIND_WORDS[kind.name]} ${layer}`),
        el("span", {}, `${kind.heads} heads`),
    );
}

// One column of boxes for each stack, from the words at the bottom to the output at the top.
function modelMap(app) {
    const { kinds } = app.sentence();
    const own = (name) => kinds.find((kind) => kind.name === name);
    const column = (title, names) => {
        const stack = names.map(own).filter(Boolean);
        if (stack.length === 0) return null;
        const layers = Math.max(...stack.map(({ layers: count }) => count));
        const boxes = Array.from({ length: layers }, (_, n) => n + 1).flatMap((layer) =>
            stack.filter((kind) => layer <= kind.layers).map((kind) => mapBox(app, kind, layer)),
        );
        return el(
            "div",
            { class: "map-column" },
            boxes.reverse(),
            el("span", { class: "hint" }, title),
        );
    };
    return el(
        "div",
        { class: "model-map", role: "group", "aria-label": "The attentions of the model" },
        column(app.sentence().picture ? "patches \u2191" : own("decoder") || own("cross") ? "source words \u2191" : "words \u2191", [
            "encoder",
        ]),
        column(own("encoder") ? "translation so far \u2191" : "words \u2191", ["decoder", "cross"]),
    );
}

// ----------------------------------------------------------------- heads -----

// The clearest head of each role, rarer roles first: heads that differ from each other.
export function differentHeads(items) {
    const byRole = new Map();
    for (const item of items) {
        const list = byRole.get(item.role.role) ?? [];
        byRole.set(item.role.role, [...list, item]);
    }
    const excess = ({ role }) => (role.score ?? 0) - (role.threshold ?? 0);
    return [...byRole.values()]
        .sort((a, b) => a.length - b.length)
        .map((list) => list.reduce((best, item) => (excess(item) > excess(best) ? item : best)))
        .slice(0, DIFFERENT_HEADS);
}

function differentCards(app) {
    const items = app.sentence().kinds.flatMap(({ name }) => app.items(name)),
        draws = drawsWhenSeen();
    return differentHeads(items).map(({ head, role }) => {
        const canvas = el("canvas", { class: "thumb", "aria-hidden": "true" });
        draws(canvas, head);
        return el(
            "button",
            {
                type: "button",
                class: "small-card",
                id: `differs-${head.kind}-${head.layer}-${head.head}`,
                title: role.words,
                onclick: () =>
                    app.set({ view: "head", kind: head.kind, layer: head.layer, head: head.head }),
            },
            el("b", {}, headName(head)),
            canvas,
            roleBadge(role),
        );
    });
}

function chips(app) {
    if (!app.live || app.page.model.reads === "pictures") return null;
    const list = app.page.model.family === "translator" ? LABORATORY_CHIPS : ENGLISH_CHIPS;
    return el(
        "p",
        { class: "chips" },
        el("span", { class: "hint" }, "Try: "),
        list.map((text, n) =>
            el(
                "button",
                { type: "button", id: `chip-${n + 1}`, onclick: () => app.live.ask({ text }) },
                text,
            ),
        ),
    );
}

// Open on a page that nobody has changed yet.
export function intro(app, fresh) {
    return el(
        "details",
        { class: "intro", id: "intro", open: fresh },
        el("summary", {}, "What this is"),
        el("p", { class: "prose" }, el("b", {}, whatThisIs(app)), " ", limits(app) ?? ""),
        chips(app),
        el(
            "div",
            { class: "intro-row" },
            el("section", {}, el("h3", {}, "The model: its attentions"), modelMap(app)),
            el(
                "section",
                { class: "grow" },
                el("h3", {}, "Heads that differ"),
                el("div", { class: "different" }, differentCards(app)),
            ),
        ),
    );
}
