// SPDX-License-Identifier: MIT
// Experiments for the Study view (src/page/page_probe.h): what is asked, and the answers, which are
// kept while the page is open.
import { ask } from "./ask.js";
import { shownWord } from "./data.js";
import { released } from "./dom.js";
import { wordsOf } from "./join.js";
import { readChanges } from "./live.js";
import { patchedHeads } from "./study_patch.js";

export function percentText(logarithm) {
    const share = 100 * Math.exp(logarithm);
    return `${share >= 0.1 || share === 0 ? share.toFixed(1) : share.toPrecision(1)} %`;
}

const KEPT_PROBES = 40;

// Numbers in the form of the address, "2,5"; others than whole ones from 0 on are left out.
export function readPlaces(text, count) {
    const places = text.split(",").filter((part) => /^\d+$/.test(part));
    return [...new Set(places.map(Number))].filter((n) => n < count).sort((a, b) => a - b);
}

// The words that can be hidden, each with its tokens: of the source, or of a text without one.
export function hidableWords(sentence) {
    const side = sentence.source ? "source" : "target";
    const words = [];
    const wordOf = wordsOf(sentence[`${side}_continues`] ?? sentence[side].map(() => 0));
    sentence[side].forEach((token, n) => {
        (words[wordOf[n]] ??= { text: "", tokens: [] }).tokens.push(n);
        words[wordOf[n]].text += token.replace(/^(##|[\u2581\u0120])(?=.)/, "");
    });
    return words;
}

// The hidden tokens of the state.
export function hiddenTokens(app) {
    const { source, target } = app.tokens.sentences[0];
    return readPlaces(app.state.hide, (source ?? target).length);
}

// Nothing is requested that the page knows not to exist: addresses may be written by hand.
export function probeRequest(app) {
    const { target, expected } = app.live.open.sentences[0];
    const { said, word } = app.state;
    const probe = { hidden: hiddenTokens(app), lens: true };
    if (expected && said >= 0 && said < target.length) {
        probe.row = said;
        if (word >= 0) probe.word = word;
    }
    const heads = patchedHeads(app);
    if (heads.length > 0 && app.state.second) probe.patch = { text: app.state.second, heads };
    return { ...app.live.asked(), changes: readChanges(app.live.closed), probe };
}

function readProbe(text) {
    const probe = JSON.parse(text);
    if (probe.format !== "mha-probe-1") throw new Error(`unknown format ${probe.format}`);
    if (probe.shares) probe.shares.word = shownWord(probe.shares.word);
    for (const row of probe.rows ?? []) {
        if (row.word !== undefined) row.word = shownWord(row.word);
    }
    const cells = (probe.lens ?? []).flat();
    const lists = [
        ...(probe.rows ?? []).flatMap((row) => [row.likely_before, row.likely_after]),
        ...cells.map(({ likely }) => likely),
    ];
    for (const likely of lists.flat()) likely.word = shownWord(likely.word);
    return probe;
}

const probes = new Map();
let latestProbe = null;

async function fetchProbe(app, key) {
    try {
        probes.set(key, { probe: readProbe(await ask(JSON.parse(key))) });
    } catch (error) {
        probes.set(key, { error: error.message });
    }
    await released();
    if (app.state.view === "study") app.render();
}

// {probe, error, waiting}: the experiment of the state. While it is computed the probe is the latest
// one of the same text, or null; a reason is given if there is none.
export function probeOf(app) {
    const key = JSON.stringify(probeRequest(app));
    const known = probes.get(key);
    if (known?.error) {
        probes.delete(key); // asked again when the view is made again for another reason
        return { probe: null, error: known.error, waiting: false };
    }
    if (known?.probe) {
        latestProbe = { text: app.live.text, probe: known.probe };
        return { probe: known.probe, error: null, waiting: false };
    }
    if (!known) {
        probes.set(key, {});
        if (probes.size > KEPT_PROBES) probes.delete(probes.keys().next().value);
        fetchProbe(app, key);
    }
    const probe = latestProbe?.text === app.live.text ? latestProbe.probe : null;
    return { probe, error: null, waiting: true };
}
