// SPDX-License-Identifier: MIT
// Pictures in a live page: those that the page came with, and any that is chosen or dropped. A picture
// is sent as the model reads it: scaled and made grey here by the arithmetic of the program
// (src/picture/picture_resize.c), so that it is the same picture as for "mha see".
import { decodeBytes } from "./data.js";
import { el } from "./dom.js";
import { pictureThumb, rankedClasses } from "./picture.js";

const SIDE_MAX = 8192;
const LUMINANCE = [0.299, 0.587, 0.114];

// ---------------------------------------------------------------- reading -----

// {rows, columns, channels: 1, 3 or 4, pixels} of a file that the browser knows, or of PGM or PPM.
export async function readPictureFile(file) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (bytes[0] === 0x50 && (bytes[1] === 0x35 || bytes[1] === 0x36)) return readPnm(bytes);
    let image;
    try {
        image = await createImageBitmap(file, {
            colorSpaceConversion: "none",
            premultiplyAlpha: "none",
        });
    } catch {
        throw new Error(`${file.name} is no picture that this browser can read.`);
    }
    const { width: columns, height: rows } = image;
    if (Math.max(rows, columns) > SIDE_MAX)
        throw new Error(`${file.name}: at most ${SIDE_MAX} pixels a side.`);
    const canvas = el("canvas", { width: columns, height: rows });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return { rows, columns, channels: 4, pixels: context.getImageData(0, 0, columns, rows).data };
}

// A binary PGM or PPM of 8 bits; its header is four words, and comments.
export function readPnm(bytes) {
    const words = [];
    let at = 0;
    while (words.length < 4 && at < bytes.length) {
        let word = "";
        if (bytes[at] === 0x23) while (at < bytes.length && bytes[at] !== 10) at++;
        while (at < bytes.length && bytes[at] > 32) word += String.fromCharCode(bytes[at++]);
        if (word !== "") words.push(word);
        at++;
    }
    const channels = words[0] === "P5" ? 1 : 3;
    const [columns, rows, most] = words.slice(1).map(Number);
    const size = rows * columns * channels;
    if (!(rows > 0 && columns > 0 && Math.max(rows, columns) <= SIDE_MAX && most === 255))
        throw new Error("This PGM or PPM file is not one of 8 bits.");
    if (bytes.length - at < size) throw new Error("This PGM or PPM file is cut off.");
    return { rows, columns, channels, pixels: bytes.subarray(at, at + size) };
}

// --------------------------------------------------------------- resizing -----

// The places of a line of `from` values, and their weights, of which value n of `to` is the mean.
function tapsOf(from, to) {
    const scale = from / to,
        reach = Math.max(1, scale);
    return Array.from({ length: to }, (_, n) => {
        const centre = (n + 0.5) * scale;
        const first = Math.max(0, Math.floor(centre - reach)),
            last = Math.min(from - 1, Math.ceil(centre + reach));
        const weights = [];
        for (let at = first; at <= last; at++) {
            const away = Math.abs(at + 0.5 - centre) / reach;
            weights.push(away < 1 ? 1 - away : 0);
        }
        return { first, weights, total: weights.reduce((sum, one) => sum + one, 0) };
    });
}

function resizeLine(taps, input, from, step, output, to, stepTo) {
    taps.forEach(({ first, weights, total }, n) => {
        let sum = 0;
        for (let k = 0; k < weights.length; k++) sum += weights[k] * input[from + (first + k) * step];
        output[to + n * stepTo] = sum / total;
    });
}

const byteOf = (value) => Math.min(255, Math.max(0, Math.floor(value + 0.5)));

// A channel as side x side bytes.
function resizeChannel({ rows, columns, channels, pixels }, channel, side) {
    const across = tapsOf(columns, side),
        down = tapsOf(rows, side);
    const middle = new Float64Array(rows * side),
        out = new Float64Array(side * side);
    for (let y = 0; y < rows; y++)
        resizeLine(across, pixels, y * columns * channels + channel, channels, middle, y * side, 1);
    for (let x = 0; x < side; x++) resizeLine(down, middle, x, side, out, x, side);
    return Uint8Array.from(out, byteOf);
}

// A picture of any size as a model reads it: {rows, columns, channels, bytes: base64} for requests.
// What is transparent shows black.
export function modelPicture(picture, side, channels) {
    const planes = Array.from({ length: picture.channels }, (_, c) =>
        resizeChannel(picture, c, side),
    );
    const colour = picture.channels >= 3,
        alpha = picture.channels === 4 ? planes[3] : null;
    const bytes = new Uint8Array(side * side * channels);
    for (let n = 0; n < side * side; n++) {
        const seen = alpha ? alpha[n] / 255 : 1;
        let grey = 0;
        for (let c = 0; c < 3; c++) {
            const value = planes[colour ? c : 0][n] * seen;
            grey += LUMINANCE[c] * value;
            if (channels === 3) bytes[3 * n + c] = byteOf(value);
        }
        if (channels === 1) bytes[n] = byteOf(grey);
    }
    return { rows: side, columns: side, channels, bytes: base64Of(bytes) };
}

function base64Of(bytes) {
    let letters = "";
    for (let n = 0; n < bytes.length; n += 8192)
        letters += String.fromCharCode(...bytes.subarray(n, n + 8192));
    return btoa(letters);
}

// An example of the page, whose bytes are planes, for requests.
export function examplePicture({ bytes: text }, { side, channels }) {
    const planes = decodeBytes(text),
        size = side * side;
    const bytes = planes.map((_, n) => planes[(n % channels) * size + Math.floor(n / channels)]);
    return { rows: side, columns: side, channels, bytes: base64Of(bytes) };
}

// ------------------------------------------------------------------- bar -----

// Reads a file and asks for its page; what is wrong with it becomes the message.
async function takeFile(live, file) {
    const { picture } = live.open.sentences[0];
    try {
        const read = await readPictureFile(file);
        live.ask({ text: file.name, picture: modelPicture(read, picture.side, picture.channels) });
    } catch (error) {
        live.say(error.message);
    }
}

function exampleChip(live, example, n) {
    const { picture } = live.open.sentences[0];
    const canvas = el("canvas", { class: "chip-picture", "aria-hidden": "true" });
    const { side, channels } = picture;
    const pixels = decodeBytes(example.bytes);
    const colours = new Uint8Array(3 * side * side);
    for (let k = 0; k < colours.length; k++)
        colours[k] = pixels[(channels === 3 ? (k % 3) * side * side : 0) + Math.floor(k / 3)];
    pictureThumb(canvas, { ...picture, pixels: colours });
    return el(
        "button",
        {
            type: "button",
            id: `chip-${n + 1}`,
            title: example.name,
            onclick: () => live.ask({ text: example.name }),
        },
        canvas,
        example.name.split("/").at(-1),
    );
}

// Where a picture is chosen or dropped.
export function pictureBar(live) {
    const file = el("input", {
        id: "live-picture",
        type: "file",
        accept: "image/*,.pgm,.ppm",
        "aria-describedby": "live-message",
        onchange: () => file.files[0] && takeFile(live, file.files[0]),
    });
    const room = el(
        "div",
        { class: "bar drop", id: "live-drop" },
        el("label", { class: "picker" }, el("span", {}, "Choose a picture, or drop one here"), file),
        el(
            "div",
            { class: "chips", role: "group", "aria-label": "Pictures to try" },
            (live.app.page.examples ?? []).map((example, n) => exampleChip(live, example, n)),
        ),
    );
    const over = (is) => (event) => {
        event.preventDefault();
        room.classList.toggle("over", is);
    };
    room.addEventListener("dragover", over(true));
    room.addEventListener("dragleave", over(false));
    room.addEventListener("drop", (event) => {
        over(false)(event);
        if (event.dataTransfer.files[0]) takeFile(live, event.dataTransfer.files[0]);
    });
    return { element: room, input: file };
}

// ---------------------------------------------------------------- effects -----

const percentOf = (p) => `${(100 * p).toFixed(2)} %`;

// What the model says of the picture, now and with all heads.
export function classEffect(page, now, then) {
    const [after] = rankedClasses(page, now),
        [before] = rankedClasses(page, then);
    const left = now.probabilities[before.n];
    if (after.n !== before.n)
        return (
            `\u201c${after.name}\u201d (${percentOf(after.p)}) instead of \u201c${before.name}\u201d, ` +
            `which falls from ${percentOf(before.p)} to ${percentOf(left)}.`
        );
    return `It stays \u201c${before.name}\u201d: ${percentOf(before.p)} becomes ${percentOf(left)}.`;
}

const CHANGES_SHOWN = 4;

// The classes whose probabilities change most.
export function classChanges(page, now, then) {
    return rankedClasses(page, then)
        .map(({ name, p, n }) => ({ name, before: p, after: now.probabilities[n] }))
        .sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before))
        .slice(0, CHANGES_SHOWN);
}

// These as a table, with bars of both.
export function classDifference(page, now, then) {
    const bar = (kind, p) =>
        el(
            "span",
            { class: `meter ${kind}`, "aria-hidden": "true" },
            el("i", { style: `width:${(100 * p).toFixed(1)}%` }),
        );
    return el(
        "ul",
        { class: "class-changes", id: "live-classes" },
        classChanges(page, now, then).map(({ name, before, after }) =>
            el(
                "li",
                {},
                el("span", {}, name),
                el("span", { class: "both" }, bar("", before), bar("moved", after)),
                el("b", {}, `${percentOf(before)} \u2192 ${percentOf(after)}`),
            ),
        ),
    );
}
