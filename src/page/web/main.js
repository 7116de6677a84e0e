// SPDX-License-Identifier: MIT
// The page as a whole: reads the data, shows one of the views with the bars around it, and handles
// keys. A view is a function of `app` that makes an element. The build joins all modules into one
// script.
import { headName, KIND_WORDS, readPage } from "./data.js";
import { roleHere, studiedRole } from "./roles.js";
import { placeText, readState, stateText, withinPage } from "./state.js";
import { chooser, el, NARROW, picker, watchPointer } from "./dom.js";
import { wallView } from "./wall.js";
import { formsOf, headView, modesOf } from "./head.js";
import { compareView } from "./compare.js";
import { alignView } from "./align.js";
import { modelView } from "./model.js";
import { flowView } from "./flow.js";
import { computeView, moveStep, stopPlaying, togglePlay } from "./compute.js";
import { studyView } from "./study.js";
import { convView } from "./conv.js";
import { startLive } from "./live.js";
import { goToStop, lectureActions, showLecture } from "./lecture.js";
import { intro } from "./intro.js";
import { hasPieces, joinPage } from "./join.js";
import { pictureLine } from "./picture.js";
import { lookView } from "./look.js";
import { figureCursors, restoreCursors } from "./figure_view.js";

const VIEWS = {
    wall: { name: "Wall", make: wallView },
    head: { name: "Head", make: headView },
    compare: { name: "Compare", make: compareView },
    align: { name: "Alignment", make: alignView, kind: "cross" },
    flow: { name: "Flow", make: flowView },
    compute: { name: "Compute", make: computeView },
    model: { name: "Model", make: modelView },
    study: { name: "Study", make: studyView },
    conv: { name: "Convolution", make: convView },
    look: { name: "Picture", make: lookView, words: true },
};
const ASIDE = 390;

// The keys that this page has a use for, with what they do.
function keyWords() {
    const { sentences } = app.page;
    const views = viewNames().map((view) => VIEWS[view].name.toLowerCase());
    const numbers = viewNames().map((view) => (Object.keys(VIEWS).indexOf(view) + 1) % 10);
    const modes = Object.values(modesOf(app.item().head)).map((name) => name.toLowerCase());
    return [
        [numbers.join(" "), views.join(", ")],
        ["[ ]", "the head before, the next"],
        ["{ }", "the layer before, the next"],
        kindNames().length > 1 ? ["k", `next kind: ${kindNames().join(", ")}`] : null,
        sentences.length > 1 ? ["s", app.sentence().picture ? "the next picture" : "the next sentence"] : null,
        ["m", modes.join(", ")],
        ["a", app.item().head.patches ? "picture, matrix or arcs" : "map or arcs"],
        ["c", "stretch the colours"],
        sentences.some(({ roles }) => roles) ? ["g", "the grammar\u2019s pairs"] : null,
        ["\u2190 \u2192", "compute: the step before, the next; in a lecture the stop"],
        ["p", "compute: play"],
        ["l", "begin or end the lecture"],
        ...GENERAL_KEYS,
        ...(app.live ? LIVE_KEYS : []),
    ].filter((line) => line !== null);
}

const GENERAL_KEYS = [
    ["d", "compare this head with the next"],
    ["/", "find heads"],
    ["arrows", "move in a figure or on the wall"],
    ["Enter", "choose a head on the wall, or a cell to see how its weight is computed"],
    ["t", "light, dark"],
    ["?", "this list"],
];
const LIVE_KEYS = [
    ["w", "write a sentence"],
    ["x", "disable or enable this head"],
];

// What views see:
//   app.page, app.state     the data and what is shown of it
//   app.tokens              the data before tokens are joined to words; else the same as app.page
//   app.set(patch)          changes the state, for which Back returns, and makes the view again
//   app.note(patch)         changes the state only
//   app.show(page, patch)   shows other data
//   app.live                see live.js; null if the page is a file
//   app.item(), app.items() the chosen head, all of its kind: {head, here, role}; here: its role
//                           on this sentence, role: over many if they were studied
const tokens = readPage(document.getElementById("data").textContent);
const app = {
    tokens,
    page: tokens,
    state: null,
    live: null,
    refreshCards() {},
    sentence: () => app.page.sentences[app.state.sentence],
    items: (kind = app.state.kind) => measuredItems(app.sentence(), kind),
    item: () =>
        app
            .items()
            .find(({ head }) => head.layer === app.state.layer && head.head === app.state.head),
    // The layer of a kind whose steps are in the page; null: none, or a live page, which has all.
    stepLayer: (kind) =>
        app.live
            ? null
            : (app.tokens.sentences[app.state.sentence].steps?.find((one) => one.kind === kind)
                  ?.layer ?? null),
    width: () =>
        Math.max(
            280,
            document.getElementById("view").clientWidth -
                4 -
                (app.state.view === "head" && window.innerWidth > NARROW ? ASIDE : 0),
        ),
    note(patch) {
        app.state = withinPage(choosePage({ ...app.state, ...patch }), app.page);
        history.replaceState(null, "", `#${stateText(app.state)}`);
        showCommand();
    },
    // As note(), but Back returns to the state before.
    go(patch) {
        const before = placeText(app.state);
        const next = withinPage(choosePage({ ...app.state, ...patch }), app.page);
        if (placeText(next) !== before) history.pushState(null, "", `#${stateText(next)}`);
        app.note(next);
    },
    set(patch) {
        if ("view" in patch) stopPlaying();
        const moved = ["sentence", "kind"].some(
            (name) => name in patch && patch[name] !== app.state[name],
        );
        app.go(moved ? { row: -1, column: -1, ...patch } : patch);
        app.render();
    },
    show(page, patch) {
        app.tokens = page;
        app.page = null;
        if (patch.closed !== app.state.closed) app.go(patch);
        else app.note(patch);
        app.render();
    },
    render,
};

// Makes app.page the one that the state wants: of tokens or of whole words.
function choosePage(state) {
    const joined = state.words === 1 && hasPieces(app.tokens);
    if (app.page === null || joined !== (app.page !== app.tokens)) {
        app.page = joined ? joinPage(app.tokens) : app.tokens;
        measured.clear();
    }
    return state;
}

const measured = new Map();
function measuredItems(sentence, kind) {
    const key = `${sentence.index}.${kind}`;
    if (!measured.has(key))
        measured.set(
            key,
            sentence.heads[kind].map((head) => {
                const here = roleHere(head);
                return { head, here, role: head.study ? studiedRole(head.study) : here };
            }),
        );
    return measured.get(key);
}

// ----------------------------------------------------- header and navigation -----

const WORDS_ABOVE = 36;
const DOUBTFUL = 0.3; // probability below which a word is marked

// A line of words; of a long text only its beginning.
function wordLine(words, attributes, make) {
    const more = words.length - WORDS_ABOVE;
    return el(
        "p",
        attributes,
        words.slice(0, WORDS_ABOVE).map(make),
        more > 0 ? el("span", { class: "more" }, `\u2026 ${more} more`) : null,
    );
}

function plainWord(word) {
    return el("span", { class: "word" }, word);
}

// A word of the source; one that the model does not know is marked.
function sourceWord(sentence, word, i) {
    if (!sentence.unknown?.includes(i)) return plainWord(word);
    return el(
        "span",
        { class: "word unknown", title: `\u201c${word}\u201d: the model does not know this word` },
        word,
    );
}

function saidWord(sentence, word, i) {
    const chance = Math.exp(sentence.log_likelihood[i]);
    const other = sentence.said[i] !== word;
    return el(
        "span",
        {
            class: other ? "word wrong" : chance < DOUBTFUL ? "word doubtful" : "word",
            style: `--chance:${chance.toFixed(3)}`,
            title:
                `${word}: probability ${chance.toFixed(4)}` +
                (other ? `; the model would rather say ${sentence.said[i]}` : ""),
        },
        word,
    );
}

// The tokens of a model that only decodes: each but the first was predicted by the row before it.
function readWord(sentence, word, i) {
    return i === 0 ? plainWord(word) : saidWord(sentence, word, i - 1);
}

function sentenceLine() {
    const sentence = app.sentence(),
        { source, target, expected } = sentence;
    if (sentence.picture && !target)
        return el("div", { class: "sentence" }, pictureLine(app.page, sentence));
    const translates = app.page.model?.family === "translator";
    const lines = [
        source && !sentence.picture
            ? wordLine(source, { lang: translates ? "en" : null }, (word, i) =>
                  sourceWord(sentence, word, i),
              )
            : null,
        expected && source
            ? wordLine(expected, { lang: translates ? "fr" : null, class: "said" }, (word, i) =>
                  saidWord(sentence, word, i),
              )
            : target
              ? wordLine(target, expected ? { class: "said" } : {}, (word, i) =>
                    expected ? readWord(sentence, word, i) : plainWord(word),
                )
              : null,
    ];
    return el(
        "div",
        { class: "sentence" },
        lines,
        sentence.outside ? outsideWarning(sentence.outside) : null,
        sentence.confidence ? confidenceLine(sentence) : null,
        expected ? wordLegend(sentence) : null,
    );
}

// The laboratory has learnt the sentences of its grammar, and no others.
function outsideWarning(reason) {
    return el(
        "div",
        { class: "warning", id: "outside", role: "note" },
        `Outside the grammar of the laboratory: ${reason}. `,
        "The model has learnt no such sentence, so its translation may be wrong.",
    );
}

// How sure a model is of the translation that it wrote.
function confidenceLine({ confidence, unsure, lost_number: lost }) {
    return el(
        "div",
        { class: unsure ? "warning" : "hint", id: "confidence", role: "note" },
        `Confidence ${confidence.toFixed(2)}: the geometric mean of the probabilities of the `,
        "words of the translation. ",
        lost ? `The number ${lost} is not in it. ` : null,
        unsure ? "The model is unsure; the translation may be wrong." : null,
    );
}

// What the lines below the words mean: each word is read by the model, also if it predicts another.
function wordLegend({ source, target, expected, said, unknown, log_likelihood: likelihood }) {
    const words = source ? expected : target.slice(1);
    const wrong = words.some((word, i) => said[i] !== word);
    const doubtful = words.some(
        (word, i) =>
            said[i] === word && likelihood[i] !== null && Math.exp(likelihood[i]) < DOUBTFUL,
    );
    return el(
        "div",
        { class: "hint", id: "word-legend" },
        "Line below a word: the stronger, the more likely the model finds it.",
        wrong
            ? [
                  " ",
                  el("span", { class: "wrong" }, "Wavy red"),
                  ": the model\u2019s own prediction is another word; point at it to see which.",
              ]
            : null,
        doubtful
            ? [" ", el("span", { class: "doubtful" }, "Dotted"), `: probability below ${DOUBTFUL}.`]
            : null,
        unknown?.length
            ? [
                  " ",
                  el("span", { class: "unknown" }, "Crossed"),
                  ": the model does not know the word.",
              ]
            : null,
    );
}

function sentencePicker() {
    return app.page.sentences.length < 2
        ? null
        : picker(
              "sentence",
              app.sentence().picture ? "Picture" : "Sentence",
              app.page.sentences.map((sentence) => [sentence.index, sentence.text]),
              app.state.sentence,
              (n) => app.set({ sentence: Number(n) }),
          );
}

function headPicker() {
    const numbers = (name) =>
        [...new Set(app.items().map(({ head }) => head[name]))].map((n) => [n, String(n)]);
    return [
        picker("layer", "Layer", numbers("layer"), app.state.layer, (layer) =>
            app.set({ layer: Number(layer) }),
        ),
        picker("head", "Head", numbers("head"), app.state.head, (head) =>
            app.set({ head: Number(head) }),
        ),
    ];
}

function kindNames() {
    return app.sentence().kinds.map(({ name }) => name);
}

function viewNames() {
    return Object.keys(VIEWS).filter(
        (view) =>
            (!VIEWS[view].kind || kindNames().includes(VIEWS[view].kind)) &&
            (!VIEWS[view].words || (app.sentence().picture && app.sentence().target)),
    );
}

function navigation() {
    const { view } = app.state;
    const kinds = Object.fromEntries(kindNames().map((name) => [name, KIND_WORDS[name]]));
    return el(
        "div",
        { class: "bar nav" },
        el("h2", { class: "hidden" }, `View: ${VIEWS[view].name}`),
        chooser(
            "view",
            "View",
            Object.fromEntries(viewNames().map((key) => [key, VIEWS[key].name])),
            view,
            showView,
        ),
        ["align", "model", "conv", "look"].includes(view)
            ? null
            : chooser("kind", "Kind of attention", kinds, app.state.kind, (kind) =>
                  app.set({ kind }),
              ),
        ["head", "compare", "compute"].includes(view) ? headPicker() : null,
        sentencePicker(),
        hasPieces(app.tokens)
            ? chooser(
                  "words",
                  "What rows and columns are",
                  { 0: "Tokens", 1: "Whole words" },
                  app.state.words,
                  (words) => app.set({ words: Number(words), row: -1, column: -1 }),
              )
            : null,
    );
}

function showCommand() {
    const state = stateText(app.state);
    document.getElementById("command").textContent =
        app.page.command + (state === "" ? "" : `   \u2192   #${state}`);
}

// The title of the page, and what a screen reader says after a change.
function announce() {
    const { view } = app.state;
    const item = app.item();
    const words = view === "head" ? `${headName(item.head)}: ${item.role.words}` : VIEWS[view].name;
    document.title = `${words} \u2013 ${app.sentence().text}`;
    document.getElementById("spoken").textContent = words;
}

function applyTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = matchMedia("print").matches
        ? "light"
        : app.state.theme || (dark ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    document.getElementById("theme").textContent = theme === "dark" ? "Light" : "Dark";
}

// A page from disk has the steps of one layer: Compute begins there.
function showView(view) {
    const layer = view === "compute" ? app.stepLayer(app.state.kind) : null;
    app.set(layer === null ? { view } : { view, layer });
}

// Keeps the focus on the same element if it still exists, and the cell that a figure explains as long
// as the same view is shown.
let shownPlace = "";
function render() {
    const focused = document.activeElement?.id;
    const place = `${app.state.view} ${app.state.step}`;
    const cursors = place === shownPlace ? figureCursors() : [];
    shownPlace = place;
    applyTheme();
    document.getElementById("sentence-room").replaceChildren(sentenceLine());
    document.getElementById("navigation").replaceChildren(navigation());
    showLecture(app);
    document
        .getElementById("view")
        .replaceChildren(
            ...(app.state.view === "wall" ? [intro(app, stateText(app.state) === "")] : []),
            VIEWS[app.state.view].make(app),
        );
    showCommand();
    announce();
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    restoreCursors(cursors);
}

// ------------------------------------------------------------------ keys -----

function nextOf(list, value, step = 1) {
    return list[(list.indexOf(value) + step + list.length) % list.length];
}

function stepHead(name, step) {
    const numbers = [...new Set(app.items().map(({ head }) => head[name]))];
    app.set({ [name]: nextOf(numbers, app.state[name], step) });
}

function stepLayer(step) {
    if (app.state.view !== "flow") return stepHead("layer", step);
    const layers = [...new Set(app.items().map(({ head }) => head.layer))];
    app.set({ from: nextOf(layers, app.state.from || layers.at(-1), step) });
}

const ACTIONS = {
    "[": () => stepHead("head", -1),
    "]": () => stepHead("head", 1),
    "{": () => stepLayer(-1),
    "}": () => stepLayer(1),
    k: () => app.set({ kind: nextOf(kindNames(), app.state.kind) }),
    s: () => app.set({ sentence: (app.state.sentence + 1) % app.page.sentences.length }),
    m: () => app.set({ mode: nextOf(Object.keys(modesOf(app.item().head)), app.state.mode) }),
    a: () => app.set({ form: nextOf(Object.keys(formsOf(app.item().head)), app.state.form) }),
    c: () => app.set({ stretch: app.state.stretch ? 0 : 1 }),
    g: () => app.set({ gold: app.state.gold ? 0 : 1 }),
    d: () => app.set({ view: "compare", other: "" }),
    l: () => goToStop(app, app.state.stop > 0 ? 0 : 1),
    t: () => toggleTheme(),
    "/": () => {
        app.set({ view: "wall" });
        document.getElementById("find").focus();
    },
    "?": () => showKeys(),
};
// Keys of one view, outside of its figures.
const VIEW_ACTIONS = {
    compute: {
        ArrowRight: () => moveStep(app, 1),
        ArrowLeft: () => moveStep(app, -1),
        p: () => togglePlay(app),
    },
};
Object.keys(VIEWS).forEach((view, n) => {
    ACTIONS[(n + 1) % 10] = () => showView(view);
});

function showKeys() {
    document
        .getElementById("key-list")
        .replaceChildren(
            ...keyWords().flatMap(([key, words]) => [
                el("dt", {}, el("kbd", {}, key)),
                el("dd", {}, words),
            ]),
        );
    document.getElementById("keys").showModal();
}

function toggleTheme() {
    app.set({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" });
}

function onKey(event) {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const own =
        event.target.tagName === "CANVAS"
            ? {}
            : app.state.stop > 0
              ? lectureActions(app)
              : VIEW_ACTIONS[app.state.view];
    const action = own?.[event.key] ?? ACTIONS[event.key];
    if (document.getElementById("keys").open || !action) return;
    event.preventDefault();
    action();
}

async function copyCommand(event) {
    const button = event.currentTarget;
    try {
        await navigator.clipboard.writeText(app.page.command);
        button.textContent = "Copied";
    } catch {
        getSelection().selectAllChildren(document.getElementById("command"));
        button.textContent = "Selected";
    }
    setTimeout(() => {
        button.textContent = "Copy";
    }, 1500);
}

// ----------------------------------------------------------------- start -----

// The head of the card that has the focus, else the chosen one.
function liveHead() {
    const [, layer, head] =
        /^(?:card|zero|uniform)-(\d+)-(\d+)$/.exec(document.activeElement?.id ?? "") ?? [];
    return layer
        ? { kind: app.state.kind, layer: Number(layer), head: Number(head) }
        : app.item().head;
}

function addLive() {
    app.live = startLive(app);
    ACTIONS.w = () => app.live.write();
    ACTIONS.x = () => app.live.toggle(liveHead());
}

function aboutText() {
    const { model, sentences, version } = app.page,
        { kinds } = sentences[0];
    const layers = model && [model.encoder_layers, model.decoder_layers].filter((n) => n > 0);
    const shape = model
        ? `${model.family === "translator" ? "" : `${model.family}: `}${layers.join(" + ")} layers of ` +
          `${model.heads} heads, ${model.width} wide`
        : kinds
              .map((kind) => `${kind.name}: ${kind.layers} layers of ${kind.heads} heads`)
              .join(", ");
    const precision = kinds.some(({ compact }) => compact)
        ? "weights are rounded to 12 bits: a weight w, in a row whose largest is m, has an error of " +
          "at most \u221a(w m) / 4095"
        : model
          ? "weights are 32-bit floats as computed"
          : "weights are as in the file";
    const effects =
        model && !kinds[0].losses
            ? "; the loss without each head was not measured, since that would take too long"
            : "";
    return `${shape}; layers and heads count from 1; ${precision}${effects}; mha ${version}`;
}

// Parts of the page are for some models only: "any", and what this one does.
function modelNames() {
    const { model } = app.page;
    if (!model) return [];
    if (model.reads === "pictures") return ["any", "pictures"];
    return ["any", model.translates ? "translates" : model.predicts ? "predicts" : "encodes"];
}

function begin() {
    app.state = readState(location.hash, app.tokens);
    app.note({});
    document.getElementById("about").textContent = aboutText();
    for (const element of document.querySelectorAll("[data-model]"))
        element.hidden = !modelNames().includes(element.dataset.model);
    if (document.documentElement.hasAttribute("data-live")) addLive();
    document.getElementById("theme").addEventListener("click", toggleTheme);
    document.getElementById("lecture-start").addEventListener("click", () => goToStop(app, 1));
    document.getElementById("help").addEventListener("click", ACTIONS["?"]);
    document.getElementById("copy").addEventListener("click", copyCommand);
    document.addEventListener("keydown", onKey);
    watchPointer();
    window.addEventListener("hashchange", () => {
        app.state = readState(location.hash, app.tokens);
        app.note({});
        render();
        app.live?.follow();
    });
    let waiting = 0;
    window.addEventListener("resize", () => {
        clearTimeout(waiting);
        waiting = setTimeout(render, 120);
    });
    for (const query of ["(prefers-color-scheme: dark)", "print"])
        matchMedia(query).addEventListener("change", render);
    render();
    app.live?.begin();
}

begin();
