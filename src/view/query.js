// SPDX-License-Identifier: MIT
// The language that finds heads:  prev>0.9 layer<2 aligns attends(it -> cat)>0.4 like L2H3
import { headDivergence, ROLE_NAMES } from "./metrics.js";
import { isVisible } from "./data.js";

const COMPARISONS = {
    ">": (a, b) => a > b,
    "<": (a, b) => a < b,
    "=": (a, b) => Math.abs(a - b) < 1e-9,
    ">=": (a, b) => a >= b,
    "<=": (a, b) => a <= b,
};
export const QUERY_FIELDS = [
    "layer",
    "head",
    "prev",
    "next",
    "self",
    "first",
    "end",
    "same",
    "aligned",
    "entropy",
    "spread",
    "confidence",
    "distance",
    "error",
    "loss",
    "importance",
];

function fieldValue(item, field) {
    if (field === "importance") return item.head.study?.importance ?? null;
    if (field === "layer" || field === "head" || field === "loss") return item.head[field];
    return item.metrics[field];
}

// The largest weight from one word to another; words may stand at several places.
function attends(head, from, to) {
    let most = 0;
    head.rowWords.forEach((row, i) =>
        head.columnWords.forEach((column, j) => {
            if (row === from && column === to && isVisible(head, i, j))
                most = Math.max(most, head.weights[i * head.columns + j]);
        }),
    );
    return most;
}

function parseLike(text, items) {
    const found = /^l(\d+)h(\d+)$/.exec(text.toLowerCase());
    const item =
        found &&
        items.find(({ head }) => head.layer === Number(found[1]) && head.head === Number(found[2]));
    if (!item) throw new Error(`like ${text}: no such head; write like L2H3`);
    return item;
}

// {test(item), like}: which items to show, and which head to sort by likeness to. Throws an Error
// with a sentence for what it does not understand.
export function parseQuery(text, items) {
    const tests = [];
    let like = null;
    let rest = text.trim();
    while (rest !== "") {
        let found;
        if (
            (found = /^attends\(\s*(\S+?)\s*->\s*(\S+?)\s*\)\s*(>=|<=|>|<|=)\s*([\d.]+)/.exec(rest))
        ) {
            const [, from, to, sign, value] = found;
            tests.push((item) => COMPARISONS[sign](attends(item.head, from, to), Number(value)));
        } else if ((found = /^like\s+(\S+)/i.exec(rest))) {
            like = parseLike(found[1], items);
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
            const names = new Set([...ROLE_NAMES, ...items.map((item) => item.role.role)]);
            if (![...names].some((name) => name.includes(word)))
                throw new Error(`${word}: no such role; there are ${[...names].join(", ")}`);
            tests.push((item) => item.role.role.includes(word) || item.here.role.includes(word));
        } else {
            throw new Error(`"${rest}" is not understood; try prev>0.5 layer<3`);
        }
        rest = rest.slice(found[0].length).trim();
    }
    return { test: (item) => tests.every((test) => test(item)), like };
}

const SORTS = {
    layer: () => 0,
    role: (a, b) =>
        a.role.role.localeCompare(b.role.role) ||
        (b.role.score ?? b.role.runner.score) - (a.role.score ?? a.role.runner.score),
    entropy: (a, b) => a.metrics.entropy - b.metrics.entropy,
    loss: (a, b) => b.head.loss - a.head.loss,
};

export function sortItems(items, sort, like) {
    const order = like
        ? (a, b) => headDivergence(like.head, a.head) - headDivergence(like.head, b.head)
        : (SORTS[sort] ?? SORTS.layer);
    return [...items].sort(order);
}
