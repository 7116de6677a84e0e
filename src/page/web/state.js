// SPDX-License-Identifier: MIT
// The state of the page and its form in the address: page.html#view=head&kind=cross&layer=2&head=3.
// Fields with their initial value are left out.

export const BEGINNING = {
    view: "wall", // wall, head, compare, align, flow, compute, model, study
    sentence: 0,
    kind: "encoder",
    layer: 1,
    head: 1,
    heads: "", // several heads in one figure: "1,2,5"; "": all
    step: "whole", // compute: see STEP_WORDS
    from: 0, // flow: the layer at the top; 0: the last one
    mode: "raw", // see MODES
    form: "map", // map, arcs; of a head over a picture "map" is the picture, "matrix" the map
    stretch: 0, // 1: colours up to the largest value
    row: -1,
    column: -1,
    sort: "layer",
    find: "",
    other: "", // the second head: sentence.kind.layer.head
    mix: "mean", // align: mean over heads, several in colours, or head
    reads: 0, // align: 1: the row that has read the word, not the one that says it
    gold: 1,
    words: 0, // 1: tokens joined to whole words
    kernel: "edge", // of the view Convolution
    theme: "",
    stop: 0, // of the lecture, from 1; 0: none is given
    text: "", // live only: the sentence, and heads that are changed, see live.js
    closed: "",
    hide: "", // study: places of tokens, "2,5"
    second: "", // study: another sentence, from which heads are patched, and which: "cross.1.2"
    patched: "",
    said: -1, // study: the row whose word is taken apart
    word: -1, // study: the number of that word; -1: the one that the row says
};

// The views, by their names in the address.
export const VIEW_NAMES = ["wall", "head", "compare", "align", "flow", "compute", "model", "study", "conv", "look"];

export function readState(hash, page) {
    const [{ picture, target }] = page.sentences;
    const view = picture && target ? "look" : BEGINNING.view;
    const state = { ...BEGINNING, view, words: page.words ? 1 : 0 };
    for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
        if (!Object.hasOwn(state, name)) continue;
        state[name] = typeof state[name] === "number" ? Number.parseInt(text, 10) || 0 : text;
    }
    return withinPage(state, page);
}

// Limits a state that was made for another page, or by hand, to what this page has.
export function withinPage(state, page) {
    const inRange = (n, least, most) => Math.min(most, Math.max(least, n));
    state.sentence = inRange(state.sentence, 0, page.sentences.length - 1);
    const kinds = page.sentences[state.sentence].kinds;
    const has = (name) => kinds.some((kind) => kind.name === name);
    if (!has(state.kind)) state.kind = kinds[0].name;
    if (!VIEW_NAMES.includes(state.view) || (state.view === "align" && !has("cross")))
        state.view = "wall";
    const { picture, target } = page.sentences[state.sentence];
    if (state.view === "look" && !(picture && target)) state.view = "wall";
    if (!["light", "dark"].includes(state.theme)) state.theme = "";
    const kind = kinds.find(({ name }) => name === state.kind);
    state.layer = inRange(state.layer, 1, kind.layers);
    state.head = inRange(state.head, 1, kind.heads);
    state.from = inRange(state.from, 0, kind.layers);
    state.row = inRange(state.row, -1, kind.rows - 1);
    state.column = inRange(state.column, -1, kind.columns - 1);
    return state;
}

// What Back returns to: everything but the theme.
export function placeText(state) {
    return stateText({ ...state, theme: BEGINNING.theme });
}

// As the part of an address after "#"; "": everything is as at the beginning.
export function stateText(state) {
    const parts = new URLSearchParams();
    for (const [name, value] of Object.entries(state))
        if (String(value) !== String(BEGINNING[name])) parts.set(name, value);
    return String(parts);
}
