// SPDX-License-Identifier: MIT
// Colour scales whose lightness rises or falls evenly, so that they can be read without seeing hue.
// Each is a list of colours at equal distances, interpolated in OKLab from a few chosen ones and
// linearly in between. The sequential scales are those of the C program (src/draw/color_scale.c) and
// of the Python package. The two ends of the diverging scales are blue and orange.

const SCALES = {
    light: {
        sequential: "f6f4ef e0e8ed c9dbea aac7e0 8bb3d6 6c9bc7 4d82b8 3b69a5 2a4f92 233672 1a1d52",
        diverging: "17468f 4273b1 6fa0d2 b2cae2 f6f4ef edc7a7 e09a5b b66b35 8c3d0a",
    },
    dark: {
        sequential: "1d2029 243049 2a3f6b 305788 3470a5 3c8aab 45a3b0 6fba9f 95d087 c9e294 fbf3a0",
        diverging: "8cc4ff 6298d3 3a6ea8 2d4565 1d2029 5f4031 a8602c d3874e ffb070",
    },
};

// 256 colours, three bytes each. Only integers are used: the bytes are those of the C program.
function makeMap(scale) {
    const anchors = scale
        .split(" ")
        .map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    const map = new Uint8Array(256 * 3);
    for (let n = 0; n < 256; n++) {
        const place = n * (anchors.length - 1);
        const from = Math.min(Math.floor(place / 255), anchors.length - 2);
        const part = place - 255 * from;
        const mix = (v, c) => Math.floor((v * (255 - part) + anchors[from + 1][c] * part + 127) / 255);
        map.set(anchors[from].map(mix), 3 * n);
    }
    return map;
}

const MAPS = Object.fromEntries(
    Object.entries(SCALES).map(([theme, { sequential, diverging }]) => [
        theme,
        { sequential: makeMap(sequential), diverging: makeMap(diverging) },
    ]),
);

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
