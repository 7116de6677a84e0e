// SPDX-License-Identifier: MIT
// All nine views of a page of a translator, by key and by mouse: each has a figure that is not empty, and
// one of its values is that of the page's data. For playwright and puppeteer, whose pages have the same
// evaluate(), click(), focus() and keyboard.
import { floats } from "./browser.mjs";

const own = (data, name) => data.sentences[0].kinds.find((kind) => kind.name === name);
const weightsOf = (kind, layer, head) => floats(kind.weights[(layer - 1) * kind.heads + head - 1]);

// Tries again until there is a value: views are made, and pictures drawn, some time after a key.
async function eventually(page, read, argument) {
    for (let tries = 0; tries < 400; tries++) {
        const value = await page.evaluate(read, argument);
        if (value !== null) return value;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return null;
}

// Whether a canvas of the selector has pixels of several colours; null: not yet. A copy is read, since
// browsers warn of canvases that are read often.
function drawn(selector) {
    const canvas = document.querySelector(selector);
    if (!canvas || canvas.width * canvas.height === 0) return null;
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const pixels = new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer);
    return pixels.some((color) => color !== pixels[0]) || null;
}

// The number in the first cell of a figure's table.
async function inTable(page, id) {
    await page.click(`#${id}-table`);
    const read = (figure) =>
        document.getElementById(figure).closest("figure").querySelector("tbody td")?.textContent ??
        null;
    return Number(await eventually(page, read, id));
}

// What a matrix of Compute says of its first cell.
async function explainedCell(page, id) {
    await page.focus(`#${id}`);
    await page.keyboard.press("ArrowRight");
    return Number(
        await eventually(page, () => document.getElementById("explain-value")?.textContent ?? null),
    );
}

const textOf = (page, selector) =>
    eventually(page, (one) => document.querySelector(one)?.textContent ?? null, selector);

// Whether a small picture is darker at (i, j) than at (k, l), of rows x columns.
function isDarker({ selector, rows, columns, dark, pale }) {
    const canvas = document.querySelector(selector);
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const light = ([i, j]) => {
        const x = Math.floor(((j + 0.5) / columns) * width),
            y = Math.floor(((i + 0.5) / rows) * height);
        const [red, green, blue] = copy.getImageData(x, y, 1, 1).data;
        return red + green + blue;
    };
    return light(dark) < light(pale);
}

// The places of the largest and the smallest weight.
function extremes(weights, columns) {
    const place = (value) => {
        const n = weights.indexOf(value);
        return [Math.floor(n / columns), n % columns];
    };
    return { dark: place(Math.max(...weights)), pale: place(Math.min(...weights)) };
}

// [key, view, name on its button, canvas, a state to begin with, wanted and got values]: a value is
// compared after Math.fround(). Heads are encoder 1.1, layers the first.
function viewsOf(data) {
    const encoder = own(data, "encoder"),
        cross = own(data, "cross");
    const first = weightsOf(encoder, 1, 1)[0];
    const mean =
        Array.from({ length: encoder.heads }, (_, n) => weightsOf(encoder, 1, n + 1)[0]).reduce(
            (sum, weight) => sum + weight,
            0,
        ) / encoder.heads;
    const exactly = (wanted) => ({ wanted, tolerance: 0 });
    return [
        {
            key: "1",
            view: "wall",
            canvas: ".card canvas",
            ...exactly(Math.fround(Number(encoder.measures.entropy[0].toFixed(2)))),
            value: async (page) => {
                const label = await eventually(page, () =>
                    document.getElementById("card-1-1").getAttribute("aria-label"),
                );
                return Number(/entropy ([\d.]+) nats/.exec(label)?.[1]);
            },
        },
        {
            key: "2",
            view: "head",
            canvas: "#main",
            ...exactly(first),
            value: (page) => inTable(page, "main"),
        },
        {
            key: "3",
            view: "compare",
            canvas: "#first",
            ...exactly(first),
            value: (page) => inTable(page, "first"),
        },
        {
            key: "4",
            view: "align",
            canvas: "#main",
            ...exactly(Math.fround(Number(cross.measures.aer_says[0].toFixed(2)))),
            value: async (page) => Number(await textOf(page, "#error-0")),
        },
        {
            key: "5",
            view: "flow",
            state: "from=1",
            canvas: "#flow",
            wanted: 0.5 + 0.5 * mean,
            tolerance: 1e-6,
            value: (page) => inTable(page, "main"),
        },
        {
            key: "6",
            view: "compute",
            state: "step=softmax",
            canvas: "#m-weights",
            ...exactly(first),
            value: (page) => explainedCell(page, "m-weights"),
        },
        {
            key: "7",
            view: "model",
            canvas: "#sheet-encoder-1-1 canvas",
            ...exactly(1),
            value: (page) =>
                page.evaluate(isDarker, {
                    selector: "#sheet-encoder-1-1 canvas",
                    rows: encoder.rows,
                    columns: encoder.columns,
                    ...extremes(weightsOf(encoder, 1, 1), encoder.columns),
                }),
        },
        {
            key: "8",
            view: "study",
            canvas: "#word-effects",
            ...exactly(-floats(encoder.word_losses)[0]),
            value: (page) => inTable(page, "word-effects"),
        },
        {
            key: "9",
            view: "conv",
            canvas: "#m-sum",
            wanted: 0,
            tolerance: 6e-5,
            value: async (page) => {
                const sum = await explainedCell(page, "m-sum");
                const said = await textOf(page, "#explain");
                return sum - Number(/without attention: ([\d.]+)/.exec(said)?.[1]);
            },
        },
    ];
}

// Visits all views from the state of a page, by keys or by clicks. told(condition, message) is check().
export async function visitViews(page, data, by, told) {
    for (const { key, view, state = "", canvas, wanted, tolerance, value } of viewsOf(data)) {
        await page.evaluate((hash) => {
            location.hash = hash;
            document.activeElement.blur();
        }, `view=${view === "wall" ? "model" : "wall"}&theme=light&${state}`);
        await eventually(page, () => document.querySelector("#view .card") && true);
        if (by === "keys") await page.keyboard.press(key);
        else await page.click(`#view-${view}`);
        const pressed = await eventually(
            page,
            (id) => document.getElementById(id).getAttribute("aria-pressed") === "true" || null,
            `view-${view}`,
        );
        told(pressed, `${view} by ${by}: its button is pressed`);
        told(await eventually(page, drawn, canvas), `${view} by ${by}: ${canvas} is drawn`);
        const got = Number(await value(page));
        const differs = Math.abs(Math.fround(got) - Math.fround(wanted));
        told(differs <= tolerance, `${view} by ${by}: ${got}, wanted ${wanted}`);
    }
}
