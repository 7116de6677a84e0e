// SPDX-License-Identifier: MIT
// The figure of flow.js: the rollout of one word, layer by layer, as bands from the word at the top
// down to the input words. Bands are as wide as their share; at every word they lie side by side.
import { exactText } from "./data.js";
import { lineUp, lineWidth } from "./figures.js";
import { textWidth } from "./painter.js";

const STEP = 104; // from one level to the next
const BAR = 5; // height of the bar of a word
const SIZE = 14; // of words
const LEAST = 0.003; // smaller shares are not drawn

// Where the bands of a step begin above and end below: [x, x] on the bars of their words.
function placeBands(step, above, below, widthOf) {
    const from = above.map(() => 0),
        to = below.map(() => 0);
    return step.map(({ from: i, to: j, share }) => {
        const wide = widthOf(share),
            high = above[i].left + from[i],
            low = below[j].left + to[j];
        from[i] += wide;
        to[j] += wide;
        return { i, j, share, top: [high, high + wide], bottom: [low, low + wide] };
    });
}

// f: {name, title, summary, word, levels: [{name, words, shares}] from the one chosen word down,
// above: which word of the next level it stands above, or -1, steps: [[{from, to, share}]] between
// two levels, room}
export function flowFigure(f) {
    const left = Math.max(...f.levels.map(({ name }) => textWidth(name, 11))) + 12;
    const width = Math.max(
        f.room.width,
        left + Math.max(...f.levels.map(({ words }) => lineWidth(words))),
    );
    const total = Math.min(150, (width - left) / 4); // width of a share of 1
    const widthOf = (share) => share * total;
    const lines = f.levels.map(({ words }) => lineUp(words, width - left));
    if (f.above >= 0) lines[0] = [lines[1][f.above]];
    const nodes = f.levels.map(({ shares }, level) =>
        lines[level].map((x, n) => ({
            x: left + x,
            left: left + x - widthOf(shares[n]) / 2,
            share: shares[n],
        })),
    );
    const y = (level) => 22 + level * STEP;
    const bands = f.steps.map((step, n) => placeBands(step, nodes[n], nodes[n + 1], widthOf));

    function drawLevel(painter, look, n) {
        const { name, words } = f.levels[n];
        painter.text(0, y(n), name, { size: 11, fill: look.dim });
        words.forEach((word, w) => {
            const { x, left: bar, share } = nodes[n][w];
            painter.text(x, y(n), word, {
                size: SIZE,
                anchor: "middle",
                fill: share > 0.02 ? look.ink : look.faint,
                weight: share > 0.15 ? 700 : 400,
            });
            if (share > LEAST) painter.rect(bar, y(n) + 7, widthOf(share), BAR, look.accent);
        });
    }

    function drawBands(painter, look, cursor, n) {
        for (const { i, j, share, top, bottom } of bands[n]) {
            if (share < LEAST) continue;
            const chosen =
                (cursor?.i === n && cursor.j === i) || (cursor?.i === n + 1 && cursor.j === j);
            painter.band(
                [...top, y(n) + 7 + BAR],
                [...bottom, y(n + 1) - 15],
                chosen ? look.gold : look.accent,
                chosen ? 0.75 : 0.34,
            );
        }
    }

    return {
        ...f,
        rows: f.levels.length,
        columns: Math.max(...f.levels.map(({ words }) => words.length)),
        width,
        height: y(f.levels.length - 1) + 20,
        draw(painter, look, cursor) {
            bands.forEach((_, n) => drawBands(painter, look, cursor, n));
            nodes.forEach((_, n) => drawLevel(painter, look, n));
            const node = cursor && nodes[cursor.i]?.[cursor.j];
            if (node) painter.frame(node.x - 18, y(cursor.i) - 15, 36, 30, look.gold, 2);
        },
        hit(x, py) {
            const i = Math.round((py - 22) / STEP);
            if (i < 0 || i >= nodes.length) return null;
            let j = 0;
            nodes[i].forEach((node, n) => {
                if (Math.abs(node.x - x) < Math.abs(nodes[i][j].x - x)) j = n;
            });
            return { i, j };
        },
        describe(i, j) {
            const { name, words, shares } = f.levels[i];
            if (words[j] === undefined) return "";
            return `${words[j]} (${name}): ${exactText(shares[j])} of \u201c${f.word}\u201d`;
        },
        table: () => [
            ["level", "word", "share"],
            ...f.levels.flatMap(({ name, words, shares }) =>
                words.map((word, n) => [name, word, exactText(shares[n])]),
            ),
        ],
    };
}
