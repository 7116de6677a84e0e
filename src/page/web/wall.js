// SPDX-License-Identifier: MIT
// The Wall view: all heads of a kind, each with a small picture, its role, and the loss without it.
// Pictures are drawn when they scroll into view.
import { headName } from "./data.js";
import { cosine, pattern } from "./metrics.js";
import { knownFields, parseQuery, sortItems } from "./query.js";
import { colorBytes } from "./color.js";
import { chooser, el, picker } from "./dom.js";
import { currentLook, thumbnail } from "./figure_view.js";
import { largestEntropy, runnerText } from "./roles.js";
import { legend, roleBadge } from "./legend.js";
import { drawPanel, PATTERN_SIZE } from "./pad.js";
import { liveCard, liveLabel } from "./live.js";
import { pictureThumb, readShares, readWords } from "./picture.js";

const DENSE_HEADS = 10; // per layer; with more, cards have no room for words
const SORT_WORDS = [
    ["layer", "Layer and head"],
    ["role", "Role"],
    ["entropy", "Sharpest first"],
    ["loss", "Most needed here first"],
    ["delta", "Most needed over the corpus first"],
];

// The score of the role, or of the nearest rule if there is no role.
function scoreText(shown) {
    if (shown.score === null) return runnerText(shown) || "no rule applies";
    return `${shown.role} ${shown.score.toFixed(2)}`;
}


// Losses in nats have two digits; 1 - cosine, which is small, has four.
function amountText(value, { lossUnit }) {
    if (lossUnit !== "nats") return `${lossUnit} ${value.toFixed(4)}`;
    return `${value >= 0 ? "+" : "\u2212"}${Math.abs(value).toFixed(2)} nats`;
}

// What a loss of this size means.
export function effectOf(value, head) {
    return head.lossUnit === "nats"
        ? `loss ${amountText(value, head)}`
        : `the ${head.patches ? "picture" : "text"}\u2019s vector turns: ${amountText(value, head)}`;
}

export function lossText(head) {
    if (head.loss === null) return "not measured";
    if (head.lossUnit !== "nats") return effectOf(head.loss, head);
    const words = head.changed.length;
    const change =
        words === 0
            ? "no word changes"
            : words === 1
              ? "one word changes"
              : `${words} words change`;
    return `${effectOf(head.loss, head)}, ${change}`;
}

function meter(label, share, text, kind = "") {
    return el(
        "span",
        { class: `meter ${kind}`, title: `${label}: ${text}` },
        el("i", { style: `width:${Math.round(100 * Math.min(1, Math.max(0, share)))}%` }),
    );
}

// How far the weights of the head have moved because of disabled heads.
function movedMeter(app, head) {
    if (!app.live?.closed) return null;
    const { shift } = app.live.shift(head);
    return [el("span", {}, "moved"), meter("moved", shift, shift.toFixed(3), "moved")];
}

function cardLabel(app, { head, role }) {
    const disabled = head.loss === null ? "" : `; disabled: ${lossText(head)}`;
    return (
        `${headName(head)}: ${role.role}, ${role.words}, ${scoreText(role)}; ` +
        `entropy ${head.measures.entropy.toFixed(2)} nats, at most ` +
        `${largestEntropy(head).toFixed(2)}` +
        `${disabled}${liveLabel(app, head)}`
    );
}

function cardMeters(app, head, most) {
    const { measures, loss, ablation } = head;
    return el(
        "span",
        { class: "meters" },
        el("span", {}, "broad"),
        meter("broad", measures.broad, `${measures.broad.toFixed(2)} of the largest entropy`),
        loss === null
            ? null
            : [
                  el("span", {}, "loss +"),
                  meter(head.patches ? "disabled, on this picture" : "disabled, on this sentence", loss / most.loss, lossText(head), "loss"),
              ],
        ablation
            ? [
                  el("span", {}, "corpus"),
                  meter(
                      "disabled, over the corpus",
                      ablation.delta / most.delta,
                      `${ablation.delta.toPrecision(2)} nats per word`,
                      "loss",
                  ),
              ]
            : null,
        movedMeter(app, head),
    );
}

function drawPicture(canvas, head) {
    if (head.patches) return pictureThumb(canvas, head.patches.picture, readShares(head));
    const look = currentLook(),
        { picture } = head;
    return thumbnail(canvas, picture, (i, j) =>
        head.causal && j > i
            ? look.masked
            : colorBytes(
                  look.theme,
                  "sequential",
                  picture.share(picture.values[i * picture.columns + j]),
              ),
    );
}

// draws(canvas, head): draws the picture when it is seen.
function card(app, item, most, likeness, draws) {
    const { head, role } = item;
    const canvas = el("canvas", { class: "thumb", "aria-hidden": "true" });
    draws(canvas, head);
    return el(
        "button",
        {
            type: "button",
            class: "card",
            id: `card-${head.layer}-${head.head}`,
            "aria-label": cardLabel(app, item),
            onclick: () => app.set({ view: "head", layer: head.layer, head: head.head }),
        },
        el(
            "span",
            { class: "card-head" },
            el(
                "b",
                {},
                el("span", { class: "kind" }, `${head.kind} `),
                `${head.layer}.${head.head}`,
            ),
            roleBadge(role, ""),
        ),
        canvas,
        el(
            "span",
            {
                class: "score",
                title:
                    "The score of the rule, and what it needs: the first rule whose score reaches " +
                    "its threshold is the role.",
            },
            likeness === undefined ? scoreText(role) : `like the drawing: ${likeness.toFixed(2)}`,
        ),
        cardMeters(app, head, most),
    );
}

// Draws pictures once, when they scroll into view; on paper all at once.
export function drawsWhenSeen() {
    if (matchMedia("print").matches) return drawPicture;
    const heads = new Map();
    const watcher = new IntersectionObserver(
        (entries) => {
            for (const { isIntersecting, target } of entries) {
                if (!isIntersecting) continue;
                watcher.unobserve(target);
                drawPicture(target, heads.get(target));
            }
        },
        { rootMargin: "200px" },
    );
    return (canvas, head) => {
        heads.set(canvas, head);
        watcher.observe(canvas);
    };
}

// Arrow keys move from card to card by their places on the screen.
export function moveFocus(event) {
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

// ------------------------------------------------------------------- view -----

const drawn = new Float64Array(PATTERN_SIZE * PATTERN_SIZE);
let drawing = false;

// The items that the query finds, sorted: {items, likeness, message}. likeness: of each item to the
// drawn pattern, if there is one.
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

// The values at which meters are full.
function mostOf(items) {
    return {
        loss: Math.max(
            items[0].head.lossUnit === "nats" ? 0.05 : 0.001,
            ...items.map(({ head }) => head.loss ?? 0),
        ),
        delta: Math.max(1e-6, ...items.map(({ head }) => head.ablation?.delta ?? 0)),
    };
}

// What the bars of the cards are, and the values of full ones.
function barLegend(app) {
    const items = app.items(),
        [{ head }] = items,
        most = mostOf(items);
    const entry = (kind, name, words) =>
        el(
            "span",
            {},
            el("span", { class: `meter ${kind}` }, el("i", {})),
            el("b", {}, name),
            ` ${words}`,
        );
    const loss =
        (head.lossUnit === "nats"
            ? "how much less likely the words become if the head is disabled"
            : `how far the ${head.patches ? "picture" : "text"}\u2019s vector turns if the head is disabled`) +
        `; a full bar is ${amountText(most.loss, head)}` +
        (items.some((item) => item.head.loss === most.loss) ? ", the largest here" : "");
    return el(
        "p",
        { class: "hint bars", id: "bar-legend" },
        "Bars: ",
        entry("", "broad", "entropy as a share of the largest"),
        head.loss === null ? null : entry("loss", "loss +", loss),
        head.ablation
            ? entry("loss", "corpus", "the same over the corpus, in nats per word")
            : null,
        app.live?.closed
            ? entry("moved", "moved", "share of its weight that went to other columns")
            : null,
    );
}

function showCards(app, grid, message) {
    const all = app.items(),
        chosen = chosenItems(app),
        most = mostOf(all),
        draws = drawsWhenSeen();
    message.textContent = chosen.message;
    const heads = Math.max(...all.map(({ head }) => head.head));
    grid.classList.toggle("layers", inLayers(app));
    grid.classList.toggle("dense", inLayers(app) && heads > DENSE_HEADS);
    grid.style.setProperty("--heads", heads);
    grid.replaceChildren(
        ...chosen.items.map((item) =>
            liveCard(app, item, card(app, item, most, chosen.likeness.get(item), draws)),
        ),
    );
}

function findField(app) {
    return el("input", {
        id: "find",
        type: "search",
        value: app.state.find,
        spellcheck: "false",
        placeholder: app.items()[0].head.patches?.rows
            ? "above   object>0.2 layer<2   like 2.3   attends(1.2 -> 3.1)>0.4"
            : "previous   prev>0.9 layer<2   like 2.3   attends(cat -> the)>0.4",
        "aria-describedby": "find-help",
        oninput: (event) => {
            app.note({ find: event.target.value });
            app.refreshCards();
        },
    });
}

function wallBar(app) {
    const [{ head }] = app.items();
    const sorts = SORT_WORDS.filter(
        ([name]) => (name !== "loss" || head.loss !== null) && (name !== "delta" || head.ablation),
    );
    return el(
        "div",
        { class: "bar" },
        el(
            "label",
            { class: "grow" },
            el("span", { class: "hidden" }, "Find heads"),
            findField(app),
        ),
        picker("sort", "Sort", sorts, app.state.sort, (sort) => app.set({ sort })),
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
    );
}

// What the pictures of the cards are.
function wallWords(head) {
    if (head.patches)
        return `Each picture is one head: ${readWords(head)}. Each is coloured up to its largest patch. Choose one to see the row of every patch.`;
    return (
        "Each picture is one head: a row for every word that attends, a column for every word " +
        "attended to, stronger where the weight is larger. " +
        (head.large
            ? "For a long text each spot is the square root of the largest weight there. "
            : "") +
        "Choose one to see its words."
    );
}

export function wallView(app) {
    const grid = el("div", { class: "wall", onkeydown: moveFocus });
    const message = el("output", { class: "readout", id: "wall-message", "aria-live": "polite" });
    app.refreshCards = () => showCards(app, grid, message);
    app.refreshCards();
    return el(
        "div",
        {},
        wallBar(app),
        el(
            "p",
            { id: "find-help", class: "hint" },
            "Roles by name, or numbers: ",
            knownFields(app.items()).join(", "),
            ".",
        ),
        drawing ? drawPanel(app, drawn) : null,
        message,
        legend(app),
        el(
            "p",
            { class: "hint" },
            wallWords(app.items()[0].head),
        ),
        barLegend(app),
        grid,
    );
}
