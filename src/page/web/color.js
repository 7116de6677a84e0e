// SPDX-License-Identifier: MIT
// Colour maps, interpolated in OKLab. Their lightness rises or falls evenly, so that they can be
// read without seeing hue. The two ends of the diverging maps are blue and orange.

function hexToLinear(hex) {
    return [1, 3, 5].map((at) => {
        const s = parseInt(hex.slice(at, at + 2), 16) / 255;
        return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
}

function linearToByte(value) {
    const x = Math.min(1, Math.max(0, value));
    return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
}

function toLab(hex) {
    const [r, g, b] = hexToLinear(hex);
    const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return [
        0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
        1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
    ];
}

function fromLab([L, a, b]) {
    const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ].map(linearToByte);
}

// 256 colours, three bytes each.
function makeMap(stops) {
    const labs = stops.map(toLab);
    const map = new Uint8Array(256 * 3);
    for (let n = 0; n < 256; n++) {
        const place = (n / 255) * (labs.length - 1);
        const from = Math.min(Math.floor(place), labs.length - 2);
        const part = place - from;
        map.set(fromLab(labs[from].map((v, c) => v + part * (labs[from + 1][c] - v))), 3 * n);
    }
    return map;
}

const MAPS = {
    light: {
        sequential: makeMap(["#f6f4ef", "#c9dbea", "#8bb3d6", "#4d82b8", "#2a4f92", "#1a1d52"]),
        diverging: makeMap(["#17468f", "#6fa0d2", "#f6f4ef", "#e09a5b", "#8c3d0a"]),
    },
    dark: {
        sequential: makeMap(["#1d2029", "#2a3f6b", "#3470a5", "#45a3b0", "#95d087", "#fbf3a0"]),
        diverging: makeMap(["#8cc4ff", "#3a6ea8", "#1d2029", "#a8602c", "#ffb070"]),
    },
};

// share: 0 to 1, for the diverging map 0.5 stands for zero. Three bytes.
export function colorBytes(theme, name, share) {
    const n = Math.round(255 * Math.min(1, Math.max(0, share)));
    return MAPS[theme][name].subarray(3 * n, 3 * n + 3);
}

export function colorText(theme, name, share) {
    return `rgb(${colorBytes(theme, name, share).join(",")})`;
}

// Black or white, whichever is readable on the colour.
export function inkOn(theme, name, share) {
    const [r, g, b] = colorBytes(theme, name, share);
    return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#15161a" : "#ffffff";
}
