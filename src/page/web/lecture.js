// SPDX-License-Identifier: MIT
// A lecture: stops, each of which is a state of the page with a text above the view, in type for a
// projector. Arrow keys, or the keys of a presenter, go from stop to stop.
import { BEGINNING, readState } from "./state.js";
import { el } from "./dom.js";

// What a stop leaves as it is unless it names it.
const KEPT_FIELDS = ["sentence", "theme", "text", "words"];

// Whether the page has the kind of attention and the view that a stop shows.
function isShown(app, { state }) {
    const fields = new URLSearchParams(state),
        { kinds } = app.sentence();
    const has = (name) => kinds.some((kind) => kind.name === name);
    const kind = fields.get("kind"),
        view = fields.get("view");
    if (kind && !has(kind)) return false;
    if (view === "align" && !has("cross")) return false;
    if (view !== "compute") return true;
    return Boolean(app.live || app.tokens.sentences[app.state.sentence].steps?.length);
}

export function lectureStops(app) {
    return (app.tokens.lecture?.stops ?? []).filter((stop) => isShown(app, stop));
}

// The state of a stop. A page from disk has the steps of one layer: those are shown.
function stateOf(app, { state: text }, stop) {
    const given = new URLSearchParams(text);
    const state = { ...readState(text, app.tokens), stop };
    for (const name of KEPT_FIELDS) if (!given.has(name)) state[name] = app.state[name];
    if (!given.has("closed")) state.closed = BEGINNING.closed;
    if (!given.has("layer")) state.layer = app.stepLayer(state.kind) ?? state.layer;
    return state;
}

// Shows stop n, from 1; 0 ends the lecture. Nothing happens if there is no such stop.
export function goToStop(app, n) {
    const stops = lectureStops(app);
    if (n === 0) return app.set({ stop: 0 });
    if (n < 1 || n > stops.length) return undefined;
    app.set(stateOf(app, stops[n - 1], n));
    app.live?.follow();
    return window.scrollTo(0, 0);
}

function paragraphs(text) {
    return text
        .split(/\n\s*\n/)
        .map((part) => part.trim())
        .filter((part) => part !== "")
        .map((part) => el("p", {}, part.replaceAll("\n", " ")));
}

function stopButtons(app, n, count) {
    const button = (id, text, to, disabled) =>
        el("button", { type: "button", id, disabled, onclick: () => goToStop(app, to) }, text);
    return el(
        "div",
        { class: "bar" },
        button("stop-back", "\u2190 Back", n - 1, n <= 1),
        button("stop-next", "Next \u2192", n + 1, n >= count),
        el("span", { class: "hint" }, `${n} of ${count}`),
        button("stop-again", "Show this stop again", n, false),
        button("lecture-end", "End the lecture", 0, false),
    );
}

// Fills the room above the view.
export function showLecture(app) {
    const room = document.getElementById("lecture"),
        stops = lectureStops(app);
    document.getElementById("lecture-start").hidden = stops.length === 0;
    const n = Math.min(app.state.stop, stops.length);
    document.documentElement.toggleAttribute("data-lecture", n > 0);
    room.hidden = n < 1;
    if (n < 1) return room.replaceChildren();
    const { title, text } = stops[n - 1];
    return room.replaceChildren(
        el("p", { class: "hint", id: "lecture-title" }, app.tokens.lecture.title),
        el("h2", { id: "stop-title" }, `${n}. ${title}`),
        el("div", { class: "stop-text" }, paragraphs(text)),
        stopButtons(app, n, stops.length),
    );
}

// Keys while a lecture is given.
export function lectureActions(app) {
    const next = () => goToStop(app, app.state.stop + 1),
        back = () => goToStop(app, app.state.stop - 1 || app.state.stop);
    return {
        ArrowRight: next,
        PageDown: next,
        ArrowLeft: back,
        PageUp: back,
        Escape: () => goToStop(app, 0),
    };
}
