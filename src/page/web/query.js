// SPDX-License-Identifier: MIT
// The query language that finds heads:  prev>0.9 layer<2 aligned attends(it -> cat)>0.4 like 2.3
// A row of the decoder and of cross-attention has read a word and says the next one: attends() goes
// by the word said, reads() by the word read. In the encoder both are the word itself.
// Numbers have the names of the columns of "mha heads".
import { headDivergence } from "./metrics.js";
import { rowOf } from "./data.js";
import { rulesOf, PICTURE_RULES, RULES } from "./roles.js";

const COMPARISONS = {
    ">": (a, b) => a > b,
    "<": (a, b) => a < b,
    "=": (a, b) => Math.abs(a - b) < 1e-9,
    ">=": (a, b) => a >= b,
    "<=": (a, b) => a <= b,
};
const MEASURED = [
    "entropy",
    "smoothed",
    "broad",
    "confidence",
    "distance",
    "far",
    "first",
    "end",
    "prev",
    "self",
    "next",
    "duplicate",
    "induction",
    "question",
    "rare",
    "one",
    "says",
    "reads",
    "class",
    "above",
    "below",
    "left",
    "right",
    "around",
    "row",
    "column",
    "border",
    "same_part",
    "object",
    "reach",
];
const DERIVED = {
    layer: ({ head }) => head.layer,
    head: ({ head }) => head.head,
    score: ({ role }) => role.score,
    importance: ({ head }) => head.study?.importance ?? null,
    sink: ({ head: { measures } }) =>
        measures.first === undefined ? null : Math.max(measures.first, measures.end ?? 0),
    aer: ({ head: { measures } }) => alignmentError(measures),
    loss: ({ head }) => head.loss,
    delta: ({ head }) => head.ablation?.delta ?? null,
};
const QUERY_FIELDS = [...Object.keys(DERIVED), ...MEASURED];

// Fields that some of the items have.
export function knownFields(items) {
    return QUERY_FIELDS.filter((field) =>
        items.some((item) => (fieldValue(item, field) ?? null) !== null),
    );
}

// The smaller of the two error rates; null: not known.
export function alignmentError(measures) {
    return (measures.aer_says ?? null) === null ? null : Math.min(measures.aer_says, measures.aer_reads);
}

function fieldValue(item, field) {
    return DERIVED[field] ? DERIVED[field](item) : item.head.measures[field];
}

// The largest weight from a row of some word to another word; words may occur several times.
function largestWeight(head, words, row, from, to) {
    let most = 0;
    words.forEach((word, i) => {
        if (word !== from) return;
        const weights = row(i);
        head.columnWords.forEach((column, j) => {
            if (column === to) most = Math.max(most, weights[j]);
        });
    });
    return most;
}

const FROM_WORDS = {
    // Masked weights are 0. Of whole words, rows that say pieces of one are joined.
    attends: (head, from, to) => {
        const { saidWords, saidWeights, columns } = head;
        const row = saidWeights
            ? (i) => saidWeights.subarray(i * columns, (i + 1) * columns)
            : (i) => rowOf(head, i);
        return largestWeight(head, saidWords ?? head.rowWords, row, from, to);
    },
    reads: (head, from, to) =>
        largestWeight(head, head.rowWords, (i) => rowOf(head, i), from, to),
};

function parseLike(kind, text, items) {
    const [layer, number] = text
        .replace(/^L(\d+)H(\d+)$/i, "$1.$2")
        .split(".")
        .map(Number);
    const item = items.find(
        ({ head }) => head.layer === layer && head.head === number && (!kind || head.kind === kind),
    );
    if (!item)
        throw new Error(`like ${kind}${kind && " "}${text}: no such head here; write like 2.3`);
    return item;
}

function roleNames({ role, rule }) {
    return `${role} ${(RULES[rule] ?? PICTURE_RULES[rule]).name}`;
}

function roleTest(word, items) {
    const names = new Set([
        ...Object.values(RULES).map(({ name }) => name),
        ...items.map((item) => item.role.role),
    ]);
    if (![...names].some((name) => name.includes(word)))
        throw new Error(`${word}: no such role; there are ${[...names].join(", ")}`);
    return (item) => [item.role, item.here].some((role) => roleNames(role).includes(word));
}

// {test(item), like}: which items to show, and which head to sort by likeness to. Throws an Error
// with a sentence if the text is not understood.
export function parseQuery(text, items) {
    const tests = [];
    let like = null;
    let rest = text.trim();
    while (rest !== "") {
        let found;
        if (
            (found =
                /^(attends|reads)\(\s*(\S+?)\s*->\s*(\S+?)\s*\)\s*(>=|<=|>|<|=)\s*([\d.]+)/.exec(
                    rest,
                ))
        ) {
            const [, how, from, to, sign, value] = found;
            tests.push((item) =>
                COMPARISONS[sign](FROM_WORDS[how](item.head, from, to), Number(value)),
            );
        } else if ((found = /^like\s+(?:([a-z]+)[ :])?\s*(\S+)/i.exec(rest))) {
            like = parseLike((found[1] ?? "").toLowerCase(), found[2], items);
        } else if ((found = /^([a-z]+)\s*(>=|<=|>|<|=)\s*(-?[\d.]+)/i.exec(rest))) {
            const [, field, sign, value] = found;
            if (!QUERY_FIELDS.includes(field))
                throw new Error(`${field}: no such number; there are ${QUERY_FIELDS.join(", ")}`);
            tests.push((item) => {
                const own = fieldValue(item, field);
                return own !== null && COMPARISONS[sign](own, Number(value));
            });
        } else if ((found = /^[a-z][a-z-]*/i.exec(rest))) {
            const word = found[0].toLowerCase();
            tests.push(roleTest(word, items));
        } else {
            throw new Error(`"${rest}" is not understood; try prev>0.5 layer<3`);
        }
        rest = rest.slice(found[0].length).trim();
    }
    return { test: (item) => tests.every((test) => test(item)), like };
}

// Items without the number come last.
const fallingBy = (value) => (a, b) => (value(b) ?? -Infinity) - (value(a) ?? -Infinity);
const SORTS = {
    layer: () => 0,
    role: (a, b) =>
        a.role.role.localeCompare(b.role.role) ||
        (b.role.score ?? b.role.runner.score) - (a.role.score ?? a.role.runner.score),
    entropy: (a, b) => a.head.measures.entropy - b.head.measures.entropy,
    loss: fallingBy(DERIVED.loss),
    delta: fallingBy(DERIVED.delta),
};

export function sortItems(items, sort, like) {
    if (!like) return [...items].sort(SORTS[sort] ?? SORTS.layer);
    const apart = new Map(items.map((item) => [item, headDivergence(like.head, item.head)]));
    return [...items].sort((a, b) => apart.get(a) - apart.get(b));
}
