// SPDX-License-Identifier: MIT
// What the page computes, against closed forms on synthetic heads. Argument: the folder of the
// modules.
import { pathToFileURL } from "node:url";
import { check, equal, finish, near, test } from "./harness.mjs";

const folder = pathToFileURL(`${process.argv[2]}/`);
const data = await import(new URL("data.js", folder));
const metrics = await import(new URL("metrics.js", folder));
const { parseQuery, sortItems } = await import(new URL("query.js", folder));
const { studiedRole } = await import(new URL("roles.js", folder));
const { readState, stateText, BEGINNING } = await import(new URL("state.js", folder));
const { changeOf, readChanges, shiftOf, withChange } = await import(new URL("live.js", folder));
const { colorBytes } = await import(new URL("color.js", folder));

const T = 8;

// A head whose row i looks at columns as weightOf(i, j) says.
function makeHead(weightOf, { rows = T, columns = T, kind = "encoder", layer = 1, head = 1 } = {}) {
    const words = (count) => Array.from({ length: count }, (_, n) => `w${n}`);
    return {
        sentence: 0,
        kind,
        layer,
        head,
        rows,
        columns,
        causal: kind === "decoder",
        width: 2,
        rowWords: words(rows),
        columnWords: words(columns),
        changed: [],
        loss: 0,
        valueNorms: new Float32Array(columns).fill(2),
        weights: Float32Array.from({ length: rows * columns }, (_, n) =>
            weightOf(Math.floor(n / columns), n % columns),
        ),
    };
}

const identity = makeHead((i, j) => Number(i === j));
const shift = makeHead((i, j) => Number(j === Math.max(0, i - 1)));
const uniform = makeHead(() => 1 / T);
const column = makeHead((_, j) => Number(j === 0));
const causal = makeHead((i, j) => (j <= i ? 1 / (i + 1) : 0), { kind: "decoder" });
const roleName = (head, alignment) => metrics.roleOf(metrics.measureHead(head, alignment)).role;

await test("entropy_has_its_closed_forms", () => {
    equal(metrics.measureHead(identity).entropy, 0, "identity");
    near(metrics.measureHead(uniform).entropy, Math.log(T), 1e-12, "uniform");
    near(metrics.measureHead(uniform).spread, 1, 1e-12, "uniform, as a share");
    const wanted = [2, 3, 4, 5, 6, 7, 8].reduce((sum, n) => sum + Math.log(n), 0) / 7;
    near(metrics.measureHead(causal).entropy, wanted, 1e-6, "causal: rows with a choice only");
    equal(metrics.measureHead(causal).n, 7, "rows of a decoder that have a choice");
});

await test("masses_have_their_closed_forms", () => {
    equal(metrics.measureHead(identity).self, 1, "self of identity");
    near(metrics.measureHead(shift).prev, (T - 1) / T, 1e-12, "previous, divided by all rows");
    equal(metrics.measureHead(shift).prevShare, 1, "previous, rows that have one");
    near(metrics.measureHead(uniform).next, (T - 1) / T / T, 1e-12, "next of uniform");
    equal(metrics.measureHead(column).first, 1, "first");
    near(metrics.measureHead(column).distance, (T - 1) / 2, 1e-12, "distance");
});

await test("roles_of_synthetic_heads", () => {
    equal(roleName(identity), "self", "identity");
    equal(roleName(shift), "previous", "shift");
    equal(
        roleName(makeHead((i, j) => Number(j === Math.min(T - 1, i + 1)))),
        "next",
        "shift ahead",
    );
    equal(roleName(uniform), "broad", "uniform");
    equal(roleName(column), "first", "one column");
    equal(roleName(makeHead((_, j) => Number(j === T - 1))), "end", "last column");
    const resting = (step) => makeHead((i, j) => (j === 0 ? 0.5 : 0) + (j === step(i) ? 0.5 : 0));
    equal(roleName(resting((i) => Math.min(T - 1, i + 2))), "mixed", "just under the threshold");
    equal(roleName(resting((i) => (i + 3) % T)), "far", "the rest goes far");
    const cross = makeHead((i, j) => Number(j === T - 2 - i), { kind: "cross", rows: 5 });
    equal(roleName(cross, [[6], [5], [4], [3]]), "aligns", "cross-attention on the right words");
});

await test("roles_over_many_sentences", () => {
    const record = { found: true, rule: "offset", name: "previous", score: 0.97, low: 0.96 };
    const rest = { high: 0.98, count: 412, next: "self", next_score: 0.2 };
    const role = studiedRole({ ...record, ...rest });
    equal(role.letter, "P", "letter");
    equal(role.over, "412 cases, 95 % 0.96 to 0.98", "how sure");
    equal(role.runner.role, "self", "runner-up");
    equal(studiedRole({ ...record, ...rest, found: false }).role, "mixed", "no role");
});

await test("alignment_error_by_hand", () => {
    // Five words; the largest weights of rows 0-4 are columns 0, 1, 2, 2, 4.
    const largest = [0, 1, 2, 2, 4];
    const head = makeHead((i, j) => Number(largest[i] === j), {
        kind: "cross",
        rows: 6,
        columns: 6,
    });
    const gold = [[0], [1], [2, 3], [3], [4]];
    near(
        metrics.alignmentError(head, gold),
        1 - (2 * 4) / (5 + 6),
        1e-12,
        "4 hits, 5 found, 6 gold",
    );
    const later = makeHead((i, j) => Number(i > 0 && largest[i - 1] === j), {
        kind: "cross",
        rows: 6,
        columns: 6,
    });
    near(
        metrics.alignmentError(later, gold, true),
        3 / 11,
        1e-12,
        "the row that has read the word",
    );
});

await test("divergence_is_0_for_the_same_and_ln_2_for_nothing_in_common", () => {
    equal(metrics.headDivergence(uniform, uniform), 0, "the same");
    near(metrics.rowDivergence([1, 0], [0, 1]), Math.LN2, 1e-12, "nothing in common");
    equal(metrics.rowVariation([1, 0], [0, 1]), 1, "total variation");
});

await test("rollout_keeps_rows_at_1", () => {
    const layers = [identity, { ...identity, layer: 2 }];
    metrics
        .rollout(layers, 2)
        .forEach((value, n) =>
            equal(value, n % (T + 1) === 0 ? 1 : 0, `identity stays identity, ${n}`),
        );
    const mixed = metrics.rollout([uniform, { ...shift, layer: 2 }], 2);
    for (let i = 0; i < T; i++)
        near(
            mixed.subarray(i * T, (i + 1) * T).reduce((a, b) => a + b),
            1,
            1e-12,
            `row ${i}`,
        );
});

await test("modes", () => {
    const half = makeHead((_, j) => (j === 0 ? 0.75 : 0.25 / (T - 1)));
    near(metrics.shownValues(half, "norm")[0], 1.5, 1e-12, "weight times norm");
    const hidden = metrics.shownValues(half, "hidden");
    equal(hidden[0], 0, "the first word is hidden");
    near(
        hidden.subarray(0, T).reduce((a, b) => a + b),
        1,
        1e-6,
        "the rest is a whole",
    );
    equal(half.weights[0], 0.75, "the data stay as they were");
});

await test("a_cell_taken_apart", () => {
    const head = {
        ...makeHead(() => 0.5, { rows: 1, columns: 2 }),
        q: Float32Array.of(1, 2),
        k: Float32Array.of(3, 4, 5, 6),
        v: Float32Array.of(1, 0, 0, 1),
    };
    const apart = metrics.takeApart(head, 0, 1);
    equal(apart.dot, 17, "q . k");
    near(apart.weight, 1 / (1 + Math.exp((11 - 17) / Math.SQRT2)), 1e-12, "softmax");
});

await test("words_are_aligned_by_their_longest_common_part", () => {
    const pairs = metrics.alignWords(
        ["the", "black", "cat", "sleeps"],
        ["the", "cat", "now", "sleeps"],
    );
    equal(JSON.stringify(pairs), "[[0,0],[2,1],[3,3]]", "pairs");
});

await test("patterns", () => {
    const small = metrics.pattern(identity, 4);
    near(
        metrics.cosine(
            small,
            Float64Array.from({ length: 16 }, (_, n) => Number(n % 5 === 0)),
        ),
        1,
        1e-12,
        "a diagonal is a diagonal",
    );
    near(
        small.reduce((a, b) => a + b),
        T * (4 / T) ** 2,
        1e-12,
        "mass is kept",
    );
});

await test("queries", () => {
    const items = [identity, { ...shift, head: 2 }, { ...uniform, layer: 2 }].map((head) => {
        const measured = metrics.measureHead(head);
        const role = metrics.roleOf(measured);
        return { head, metrics: measured, role, here: role };
    });
    const found = (text) => {
        const { test: wanted, like } = parseQuery(text, items);
        return sortItems(items.filter(wanted), "layer", like)
            .map(({ head }) => data.headName(head))
            .join(",");
    };
    equal(found("prev>0.5"), "L1 H2", "a number");
    equal(found("layer=1 self>=1"), "L1 H1", "two");
    equal(found("broad"), "L2 H1", "a role");
    equal(found("attends(w3 -> w2)>0.9"), "L1 H2", "from a word to another");
    equal(found("like L2H1").split(",")[0], "L2 H1", "the likest is itself");
    for (const wrong of ["speed>3", "purple", "like L9H9", "><"]) {
        let message = "";
        try {
            parseQuery(wrong, items);
        } catch (error) {
            ({ message } = error);
        }
        check(message !== "", `"${wrong}" is refused with a sentence`);
    }
});

await test("states_and_numbers_come_back", () => {
    const page = {
        sentences: [{ kinds: [{ name: "encoder", layers: 2, heads: 4, rows: 3, columns: 3 }] }],
    };
    const state = { ...BEGINNING, view: "head", layer: 2, head: 3, find: "prev>0.5 & x=1" };
    equal(JSON.stringify(readState(stateText(state), page)), JSON.stringify(state), "round trip");
    equal(readState("#layer=99&head=-4&kind=none&row=77", page).layer, 2, "what is not there");
    for (const value of [0.1, 1 / 3, 1e-30, 123456.789, 1])
        equal(Math.fround(Number(data.exactText(Math.fround(value)))), Math.fround(value), "exact");
});

await test("lightness_of_colours_goes_one_way", () => {
    for (const [theme, sign] of [
        ["light", -1],
        ["dark", 1],
    ]) {
        let before = null;
        for (let n = 0; n <= 20; n++) {
            const [r, g, b] = colorBytes(theme, "sequential", n / 20);
            const light = 0.299 * r + 0.587 * g + 0.114 * b;
            if (before !== null) check(sign * (light - before) > 0, `${theme}: step ${n}`);
            before = light;
        }
    }
});

await test("changes_in_the_address", () => {
    const cross = { kind: "cross", layer: 1, head: 2 };
    const encoder = { kind: "encoder", layer: 2, head: 1 };
    const one = withChange("", cross, "zero");
    equal(one, "cross.1.2.zero", "one");
    const two = withChange(one, encoder, "uniform");
    equal(two, "cross.1.2.zero,encoder.2.1.uniform", "two");
    equal(changeOf(two, encoder), "uniform", "of a head");
    equal(changeOf(one, encoder), "", "of another");
    equal(withChange(withChange(two, cross, "uniform"), cross, ""), "encoder.2.1.uniform", "none");
    equal(readChanges("nonsense,cross.1,a.b.c.d").length, 0, "what is none");
});

await test("how_far_a_head_moved", () => {
    equal(shiftOf(identity, identity).shift, 0, "nowhere");
    near(shiftOf(identity, column).shift, (T - 1) / T, 1e-6, "all rows but the first");
    near(shiftOf(uniform, identity).shift, 1 - 1 / T, 1e-6, "from one word to all");
    const short = makeHead((i, j) => Number(j === i), { kind: "decoder", rows: 4, columns: 4 });
    const { shift: far, rows } = shiftOf(causal, short);
    equal(rows, 4, "rows that have read the same");
    near(far, (0 + 1 / 2 + 2 / 3 + 3 / 4) / 4, 1e-6, "over these");
    const other = makeHead(() => 0, { kind: "cross" });
    other.rowWords = ["w0", "x", "w2", "w3", "w4", "w5", "w6", "w7"];
    equal(shiftOf(other, makeHead(() => 0, { kind: "cross" })).rows, 1, "up to the first other");
});

finish("test_metrics");
