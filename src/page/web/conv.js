// SPDX-License-Identifier: MIT
// The view Convolution: nine heads that each look at one neighbour of a pixel are a 3 x 3 convolution.
// The layer is made by hand and computed here, with softmax over all pixels; the same proof for
// pictures of any size is "mha conv" (docs/claims.md).
import { explainProduct, fixed, given, place } from "./compute_explain.js";
import { equationsView } from "./compute.js";
import { chooser, el } from "./dom.js";

const PICTURE = [
    "9........9",
    "99......99",
    "9999999999",
    "9999999999",
    "95.9999.59",
    "9..9999..9",
    "9999999999",
    "9999339999",
    ".99....99.",
    "..999999..",
];
export const TILE_SIDE = PICTURE.length;
const SHARPNESS = 40; // of scores: a head looks at its pixel with all of its weight but e^-40

// The taps of a kernel, row by row.
const KERNELS = {
    edge: { name: "Edges", taps: [-1, -1, -1, -1, 8, -1, -1, -1, -1] },
    blur: { name: "Blur", taps: [1, 2, 1, 2, 4, 2, 1, 2, 1].map((n) => n / 16) },
    sharpen: { name: "Sharpen", taps: [0, -1, 0, -1, 5, -1, 0, -1, 0] },
    emboss: { name: "Relief", taps: [-2, -1, 0, -1, 1, 1, 0, 1, 2] },
};
const ARROWS = "\u2196\u2191\u2197\u2190\u2022\u2192\u2199\u2193\u2198";

const pixelAt = (i, j) => (Number(PICTURE[i][j]) || 0) / 9;
const withinPicture = (n) => Math.min(TILE_SIDE - 1, Math.max(0, n));
const offsetOf = (head) => [Math.floor(head / 3) - 1, (head % 3) - 1];

// What head h gives a pixel: softmax over all pixels of -SHARPNESS |q - p - offset|^2, times their
// brightness. Beyond the border that is the nearest pixel.
function headAt(head, i, j) {
    const [down, right] = offsetOf(head);
    let sum = 0,
        total = 0,
        least = Infinity;
    const distance = (r, c) => (r - i - down) ** 2 + (c - j - right) ** 2;
    for (let r = 0; r < TILE_SIDE; r++)
        for (let c = 0; c < TILE_SIDE; c++) least = Math.min(least, distance(r, c));
    for (let r = 0; r < TILE_SIDE; r++)
        for (let c = 0; c < TILE_SIDE; c++) {
            const power = Math.exp(SHARPNESS * (least - distance(r, c)));
            sum += power * pixelAt(r, c);
            total += power;
        }
    return sum / total;
}

// [9][TILE_SIDE * TILE_SIDE] what all heads give; computed when it is first shown.
let allHeads = null;
export function headOutputs() {
    allHeads ??= Array.from({ length: 9 }, (_, head) =>
        Array.from({ length: TILE_SIDE * TILE_SIDE }, (__, n) =>
            headAt(head, Math.floor(n / TILE_SIDE), n % TILE_SIDE),
        ),
    );
    return allHeads;
}

// The sum of the heads, and the convolution without attention.
export function sumOfHeads(taps, i, j) {
    return taps.reduce((sum, tap, head) => sum + tap * headOutputs()[head][i * TILE_SIDE + j], 0);
}

export function directSum(taps, i, j) {
    return taps.reduce((sum, tap, head) => {
        const [down, right] = offsetOf(head);
        return sum + tap * pixelAt(withinPicture(i + down), withinPicture(j + right));
    }, 0);
}

export const convTaps = (name) => KERNELS[name].taps;

// ------------------------------------------------------------ matrices -----

function pictureMatrix(cell) {
    return given("picture", "X", TILE_SIDE, TILE_SIDE, pixelAt, { weights: true, cell });
}

function kernelMatrix(taps) {
    const m = given("taps", "taps, W_V W_O of the heads", 3, 3, (i, j) => taps[3 * i + j]);
    m.explain = (i, j) => ({
        lines: [
            `head ${3 * i + j + 1} ${ARROWS[3 * i + j]}: W_V = 1 reads the brightness of its pixel, W_O = ${fixed(taps[3 * i + j])} weighs it`,
        ],
        result: taps[3 * i + j],
        lit: {},
        computed: true,
    });
    return m;
}

function shiftedMatrix(head, cell) {
    const m = given(
        `conv-${head + 1}`,
        `head ${head + 1} ${ARROWS[head]}`,
        TILE_SIDE,
        TILE_SIDE,
        (i, j) => headOutputs()[head][i * TILE_SIDE + j],
        { weights: true, cell },
    );
    const [down, right] = offsetOf(head);
    m.explain = (i, j) => {
        const [r, c] = [withinPicture(i + down), withinPicture(j + right)];
        return {
            lines: [
                `head ${head + 1} at pixel (${i + 1}, ${j + 1}): its scores are largest at (${r + 1}, ${c + 1}), ` +
                    `so softmax gives that pixel all weight, and the head returns its brightness, ${fixed(pixelAt(r, c))}`,
            ],
            result: m.value(i, j),
            lit: { picture: { row: r, column: c }, taps: offsetPlace(head) },
            computed: true,
        };
    };
    return m;
}

const offsetPlace = (head) => ({ row: Math.floor(head / 3), column: head % 3 });

function sumMatrix(taps, cell) {
    const m = given("sum", "Y", TILE_SIDE, TILE_SIDE, (i, j) => sumOfHeads(taps, i, j), { cell });
    m.explain = (i, j) => {
        const direct = directSum(taps, i, j);
        const { lines, ...rest } = explainProduct(
            "Y",
            place(m, i, j),
            taps.map((tap, head) => [
                tap,
                headOutputs()[head][i * TILE_SIDE + j],
                `head ${head + 1} ${ARROWS[head]}`,
            ]),
            null,
            m.value(i, j),
            {
                picture: { row: i, column: j },
                ...Object.fromEntries(
                    taps.map((_, head) => [`conv-${head + 1}`, { row: i, column: j }]),
                ),
            },
        );
        const apart = Math.abs(direct - m.value(i, j));
        return {
            ...rest,
            lines: [...lines, `convolution without attention: ${fixed(direct)}; ${apart.toExponential(1)} apart`],
            computed: true,
        };
    };
    return m;
}

// ---------------------------------------------------------------- view -----

// cell: pixels of the screen for one of the picture.
function convStep(taps, cell) {
    const sign = (head) => (taps[head] < 0 ? "\u2212 " : head === 0 ? "" : "+ ");
    const weighed = (head) => [
        `${sign(head)}${Math.abs(taps[head]).toFixed(2)} \u00b7`,
        shiftedMatrix(head, cell),
    ];
    const row = (first) => [0, 1, 2].flatMap((n) => weighed(first + n));
    return {
        name: "conv",
        equations: [
            [pictureMatrix(cell), "\u2217", kernelMatrix(taps)],
            row(0),
            row(3),
            [...row(6), "=", sumMatrix(taps, cell)],
        ],
    };
}

export function convView(app) {
    const kernel = Object.hasOwn(KERNELS, app.state.kernel) ? app.state.kernel : "edge";
    const { taps } = KERNELS[kernel];
    return el(
        "div",
        { class: "compute" },
        el("h2", { id: "step-title" }, "Nine heads are a 3 \u00d7 3 convolution"),
        el(
            "p",
            { class: "prose" },
            "This layer is not the model\u2019s: its weights are made by hand. Pixels are its words. The scores of a head depend " +
                "only on how far two pixels are apart, and are largest for one neighbour, so each head returns the picture moved by one pixel (the arrow " +
                "is where it looks). W_V and W_O multiply it by a tap of the kernel, and the sum of the heads is the convolution.",
        ),
        el("p", { class: "formula big" }, "Y = \u03a3\u2095 softmax(S\u2095) X W_V W_O = kernel \u2217 X"),
        chooser(
            "kernel",
            "Kernel",
            Object.fromEntries(Object.entries(KERNELS).map(([key, { name }]) => [key, name])),
            kernel,
            (next) => app.set({ kernel: next }),
        ),
        equationsView(app, convStep(taps, app.width() < 700 ? 9 : 18)),
    );
}
