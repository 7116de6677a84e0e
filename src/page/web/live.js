// SPDX-License-Identifier: MIT
// The live part of a page, of "mha serve" or "mha view --live": translates the typed sentence,
// disables heads, and shows the effect on the translation and on the other heads. ask.js asks the
// model. Changed heads are in the address: closed=cross.1.2.zero,encoder.2.1.uniform.
import { ask, startAsking } from "./ask.js";
import { headName, isVisible, readPage } from "./data.js";
import { el, released } from "./dom.js";
import { joinPage } from "./join.js";
import { cosine } from "./metrics.js";
import { classDifference, classEffect, examplePicture, pictureBar } from "./live_picture.js";
import { rankedClasses } from "./picture.js";

const LEAST_SHIFT = 0.0005; // is shown as 0.001
const TYPING_PAUSE = 200; // milliseconds
const CHANGE_WORDS = { zero: "disabled", uniform: "looks everywhere equally" };

export function readChanges(text) {
    return text
        .split(",")
        .map((part) => part.split("."))
        .filter(([, , , change]) => Object.hasOwn(CHANGE_WORDS, change ?? ""))
        .map(([kind, layer, head, change]) => ({
            kind,
            layer: Number(layer),
            head: Number(head),
            change,
        }));
}

function sameHead(a, b) {
    return a.kind === b.kind && a.layer === b.layer && a.head === b.head;
}

function changesText(changes) {
    return changes
        .map(({ kind, layer, head, change }) => [kind, layer, head, change].join("."))
        .join(",");
}

// The changes in the form of the address, with that of one head set; "": the head is unchanged.
export function withChange(text, head, change) {
    const others = readChanges(text).filter((other) => !sameHead(other, head));
    if (change) others.push({ kind: head.kind, layer: head.layer, head: head.head, change });
    return changesText(others);
}

// The same without heads that the page does not have: an address may be of another model.
export function knownChanges(text, page) {
    const [{ kinds }] = page.sentences;
    const within = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
    return changesText(
        readChanges(text).filter(({ kind: name, layer, head }) => {
            const kind = kinds.find((one) => one.name === name);
            return kind && within(layer, kind.layers) && within(head, kind.heads);
        }),
    );
}

export function changeOf(text, head) {
    return readChanges(text).find((other) => sameHead(other, head))?.change ?? "";
}

// Rows that have read the same words in both: all of the encoder, else up to the first difference.
function commonRows(head, before) {
    if (head.kind === "encoder") return head.rows;
    let rows = 0;
    while (rows < Math.min(head.rows, before.rows) && head.rowWords[rows] === before.rowWords[rows])
        rows++;
    return rows;
}

// How far the weights of a head have moved: the mean over common rows of half the sum of
// |differences|, 0 to 1.
export function shiftOf(head, before) {
    const rows = commonRows(head, before);
    let sum = 0;
    for (let i = 0; i < rows; i++)
        for (let j = 0; j < Math.min(head.columns, before.columns); j++)
            if (isVisible(head, i, j))
                sum += Math.abs(
                    head.weights[i * head.columns + j] - before.weights[i * before.columns + j],
                );
    return { shift: sum / 2 / rows, rows };
}

// -------------------------------------------------------------- the bar -----

function liveBar(live) {
    const message = el("output", { id: "live-message", class: "readout", "aria-live": "polite" });
    const changes = el("div", { id: "live-changes", class: "bar" });
    const difference = el("div", {});
    const { element, input } = live.app.page.sentences[0].picture ? pictureBar(live) : textBar(live);
    return {
        input,
        message,
        changes,
        difference,
        element: el("div", {}, element, changes, message, difference),
    };
}

function textBar(live) {
    const input = el("input", {
        id: "live-text",
        value: live.text,
        maxlength: live.app.page.model.family === "translator" ? 400 : 4000,
        spellcheck: "false",
        autocomplete: "off",
        "aria-describedby": "live-message",
        oninput: () => live.type(input.value),
    });
    const form = el(
        "form",
        {
            class: "bar",
            onsubmit: (event) => {
                event.preventDefault();
                live.ask({ text: input.value });
            },
        },
        el("label", { class: "grow picker" }, el("span", {}, "Sentence"), input),
        el("button", { id: "live-go" }, live.app.page.model.translates ? "Translate" : "Read"),
    );
    return { element: form, input };
}

function changeButtons(live) {
    const list = readChanges(live.closed);
    if (list.length === 0) return [];
    return [
        ...list.map((change) =>
            el(
                "button",
                {
                    type: "button",
                    id: `reopen-${change.kind}-${change.layer}-${change.head}`,
                    title: "enable it again",
                    onclick: () => live.change(change, ""),
                },
                `${headName(change)}: ${CHANGE_WORDS[change.change]} \u00d7`,
            ),
        ),
        el(
            "button",
            { type: "button", id: "reopen-all", onclick: () => live.ask({ closed: "" }) },
            "Enable all",
        ),
    ];
}

function farthest(live) {
    const [sentence] = live.app.page.sentences;
    const all = Object.values(sentence.heads)
        .flat()
        .filter((head) => changeOf(live.closed, head) === "")
        .map((head) => ({ head, ...live.shift(head) }));
    return all.reduce((best, next) => (next.shift > best.shift ? next : best), all[0]);
}

function summary(live) {
    const [now] = live.app.page.sentences,
        [then] = live.open.sentences;
    if (live.closed === "")
        return allEnabled(live.app.page, now);
    const far = farthest(live);
    const moved = far && far.shift >= LEAST_SHIFT;
    return (
        effectText(now, then, live.app.page) +
        (moved
            ? ` Moved most: ${headName(far.head)}, where ${(100 * far.shift).toFixed(1)} % of a ` +
              `row\u2019s weight went to other columns, on average.`
            : " No other head moves.")
    );
}

function allEnabled(page, now) {
    if (now.probabilities) {
        const [{ name, p }] = rankedClasses(page, now);
        return `All heads are enabled: \u201c${name}\u201d, ${(100 * p).toFixed(2)} %.`;
    }
    return `All heads are enabled${now.translation ? `: \u201c${now.translation}\u201d` : "."}`;
}

// What changed heads do to the whole: to the translation, to the text's vector, or to how likely the
// text is.
export function effectText(now, then, page) {
    if (now.probabilities) return classEffect(page, now, then);
    if (now.translation)
        return now.translation === then.translation
            ? `The translation stays \u201c${now.translation}\u201d.`
            : `\u201c${now.translation}\u201d instead of \u201c${then.translation}\u201d.`;
    if (now.vector)
        return (
            `The ${now.picture ? "picture" : "text"}\u2019s vector turns: 1 \u2212 cosine is ` +
            `${(1 - cosine(now.vector, then.vector)).toFixed(4)} (0: unchanged, 1: at a right angle).`
        );
    const sum = ({ log_likelihood: list }) => list.reduce((total, one) => total + (one ?? 0), 0);
    const lost = sum(then) - sum(now);
    return (
        `The text becomes ${lost >= 0 ? "less" : "more"} likely, by ` +
        `${Math.abs(lost).toFixed(2)} nats in all.`
    );
}

// The words of two texts with what was removed and what is new: [{word, change}], by their longest
// common subsequence.
export function wordChanges(before, after) {
    const a = before.split(" "),
        b = after.split(" ");
    const common = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
    for (let i = a.length - 1; i >= 0; i--)
        for (let j = b.length - 1; j >= 0; j--)
            common[i][j] =
                a[i] === b[j]
                    ? common[i + 1][j + 1] + 1
                    : Math.max(common[i + 1][j], common[i][j + 1]);
    const list = [];
    let i = 0,
        j = 0;
    while (i < a.length || j < b.length) {
        if (i < a.length && j < b.length && a[i] === b[j]) {
            list.push({ word: a[i++], change: "" });
            j++;
        } else if (j >= b.length || (i < a.length && common[i + 1][j] >= common[i][j + 1])) {
            list.push({ word: a[i++], change: "del" });
        } else list.push({ word: b[j++], change: "ins" });
    }
    return list;
}

// The translation with all heads and with those that are left, changed words marked.
function differenceLine(live) {
    const [now] = live.app.page.sentences,
        [then] = live.open.sentences;
    if (live.closed !== "" && now.probabilities)
        return [classDifference(live.app.page, now, then)];
    if (live.closed === "" || !now.translation || now.translation === then.translation) return [];
    const marked = wordChanges(then.translation, now.translation).flatMap(({ word, change }) => [
        change ? el(change, {}, word) : word,
        " ",
    ]);
    return [el("p", { class: "difference", id: "live-difference", lang: "fr" }, marked)];
}

// ------------------------------------------------------------- the heads -----

// Two buttons below a card of the wall.
export function liveCard(app, item, card) {
    if (!app.live) return card;
    const { head } = item;
    const now = changeOf(app.live.closed, head);
    const button = (change, text) =>
        el(
            "button",
            {
                type: "button",
                id: `${change}-${head.layer}-${head.head}`,
                "aria-pressed": String(now === change),
                "aria-label": `${headName(head)}: ${text}`,
                onclick: () => app.live.change(head, now === change ? "" : change),
            },
            text,
        );
    return el(
        "div",
        { class: now ? "card-room changed" : "card-room" },
        card,
        el(
            "div",
            { class: "chooser" },
            button("zero", now === "zero" ? "disabled" : "disable"),
            button("uniform", "uniform"),
        ),
    );
}

// What is added to the label of a card.
export function liveLabel(app, head) {
    if (!app.live || app.live.closed === "") return "";
    const change = changeOf(app.live.closed, head);
    return (
        `; moved ${app.live.shift(head).shift.toFixed(3)}` +
        (change ? `; ${CHANGE_WORDS[change]}` : "")
    );
}

// ------------------------------------------------------------- requests -----

// The live part of the page: live.open is the page of the same text with all heads enabled.
export function startLive(app) {
    const [{ text: beginning }] = app.page.sentences;
    // What answers of a Worker lack, since it is the same in all of them, such as the study.
    const { sentences: _, ...known } = app.tokens;
    startAsking(known.command);
    let waiting = 0,
        asking = null,
        wanted = { text: beginning, closed: "" }; // what is shown or has been requested
    let picture = exampleOf(beginning); // of the text that is shown, if the model reads pictures
    // Pictures that were chosen are kept, so that Back finds them.
    const chosen = new Map();
    function exampleOf(name) {
        const example = known.examples?.find((one) => one.name === name);
        return example ? examplePicture(example, app.page.sentences[0].picture) : null;
    }
    const pictureOf = (name) => chosen.get(name) ?? exampleOf(name);
    const live = {
        app,
        text: beginning,
        closed: "",
        open: app.page,
        shift: (head) => {
            const before = openPage().sentences[0].heads[head.kind].find((other) =>
                sameHead(other, head),
            );
            return shiftOf(head, before);
        },
        change: (head, change) => live.ask({ closed: withChange(wanted.closed, head, change) }),
        toggle: (head) => live.change(head, changeOf(wanted.closed, head) ? "" : "zero"),
        type(text) {
            clearTimeout(waiting);
            waiting = setTimeout(() => live.ask({ text }), TYPING_PAUSE);
        },
        // What a request begins with: the text, and the picture that it is the name of.
        asked: () => ({ text: live.text, ...(picture ? { picture } : {}) }),
        say: (words) => {
            bar.message.textContent = words;
        },
        // Requests what the address says, if that differs from what is shown. A picture of another
        // page is not known here.
        follow() {
            const isKnown = !picture || pictureOf(app.state.text);
            const text = (isKnown && app.state.text) || live.text;
            if (text !== live.text || app.state.closed !== live.closed)
                live.ask({ text, closed: app.state.closed });
        },
        async ask({ picture: given, ...change }) {
            if (given) chosen.set(change.text, given);
            const again = Boolean(given);
            wanted = { ...wanted, ...change };
            wanted.closed = knownChanges(wanted.closed, live.open);
            const { text, closed } = wanted;
            clearTimeout(waiting);
            asking?.abort();
            const own = (asking = new AbortController());
            try {
                for await (const { open, page } of answers(text, closed, again, own.signal)) {
                    await released();
                    if (own.signal.aborted) return;
                    picture = pictureOf(text);
                    const moved = text !== (app.state.text || live.text);
                    Object.assign(live, { text, closed, open });
                    app.show(page, { text, closed, ...(moved ? { hide: "", said: -1, word: -1 } : {}) });
                    tell();
                }
            } catch (error) {
                if (own.signal.aborted) return;
                wanted = { text: live.text, closed: live.closed };
                bar.message.textContent = error.message;
            }
        },
    };

    // live.open as the page shows it: of tokens or of whole words.
    let joined = { of: null, page: null };
    function openPage() {
        if (app.page === app.tokens) return live.open;
        if (joined.of !== live.open) joined = { of: live.open, page: joinPage(live.open) };
        return joined.page;
    }
    async function post(request, signal) {
        return readPage(await ask(request, signal), known);
    }
    // Two answers: the effects of single heads take most of the time, so they come second.
    async function* answers(text, closed, again, signal) {
        const changes = readChanges(closed);
        const shown = pictureOf(text);
        const whole = { text, ...(shown ? { picture: shown } : {}) };
        const quick = { ...whole, effects: false };
        const open =
            text === live.text && !again ? live.open : await post({ ...quick, changes: [] }, signal);
        const page = changes.length ? await post({ ...quick, changes }, signal) : open;
        yield { open, page };
        if (page.sentences[0].kinds[0].losses) return;
        const last = await post({ ...whole, changes, effects: true }, signal);
        yield { open: changes.length ? open : last, page: last };
    }
    function tell() {
        const focused = document.activeElement;
        const kept = bar.changes.contains(focused) ? bar.input : null;
        if (bar.input !== focused && !picture) bar.input.value = live.text;
        bar.changes.replaceChildren(...changeButtons(live));
        kept?.focus();
        bar.message.textContent = summary(live);
        bar.difference.replaceChildren(...differenceLine(live));
    }
    const bar = liveBar(live);
    const room = document.getElementById("live");
    room.hidden = false;
    room.append(bar.element);
    live.begin = () => {
        tell();
        live.follow();
    };
    live.write = () => bar.input.focus();
    return live;
}
