// SPDX-License-Identifier: MIT
// Matrices of the view Compute, and how a cell of one is computed from cells of others:
// {lines: texts, result: the value, lit: {id of a matrix: {row, column}} that it is made of, computed:
// the value is not one of the model, but computed by the page}.
import { cellText, rowName } from "./matrix_figure.js";

const TERMS_SHOWN = 4;

// ------------------------------------------------------- explanations -----

export function signed(value) {
    return `${value < 0 ? "\u2212" : "+"} ${Math.abs(value).toFixed(4)}`;
}

export function fixed(value, digits = 4) {
    return value.toFixed(digits).replace("-", "\u2212");
}

// A sum of products: the largest terms, then the rest together. terms: [a, b, name].
function productLine(terms, bias) {
    const sorted = terms
        .map(([a, b, name]) => ({ a, b, name, product: a * b }))
        .sort((x, y) => Math.abs(y.product) - Math.abs(x.product));
    const shown = sorted.slice(0, TERMS_SHOWN),
        rest = sorted.slice(TERMS_SHOWN);
    const total = sorted.reduce((sum, { product }) => sum + product, bias ?? 0);
    const parts = shown.map(
        ({ a, b, name }) => `(${cellText(a)} \u00b7 ${cellText(b)})${name ? ` [${name}]` : ""}`,
    );
    if (rest.length > 0)
        parts.push(
            `${rest.length} smaller terms ${fixed(rest.reduce((sum, { product }) => sum + product, 0))}`,
        );
    if (bias !== undefined && bias !== null) parts.push(`bias ${fixed(bias)}`);
    return { text: parts.join(" + "), total };
}

// The cell of a product of two matrices. names: of result, left and right.
export function explainProduct(name, where, terms, bias, stored, lit) {
    const { text, total } = productLine(terms, bias);
    return {
        lines: [
            `${name}[${where}] = \u03a3 of ${terms.length} products`,
            `= ${text}`,
            `= ${fixed(total)}`,
        ],
        result: stored,
        lit,
    };
}

export function explainSum(name, where, parts, stored, lit) {
    return {
        lines: [
            `${name}[${where}] = ${parts.map(([word]) => word).join(" + ")}`,
            `= ${parts.map(([, value], n) => (n === 0 ? fixed(value) : signed(value))).join(" ")}`,
        ],
        result: stored,
        lit,
    };
}

// ----------------------------------------------------------- matrices -----

export const at = (array, columns) => (i, j) => array[i * columns + j];

export function place(m, i, j) {
    return `${rowName(m, i)}, ${m.columnWords?.[j] ?? j + 1}`;
}

// A matrix whose cells are only values.
export function given(id, name, rows, columns, value, more = {}) {
    const m = { id, name, rows, columns, value, ...more };
    m.explain ??= (i, j) => ({
        lines: [`${name}[${place(m, i, j)}]`],
        result: value(i, j),
        lit: {},
        computed: m.computed,
    });
    return m;
}
