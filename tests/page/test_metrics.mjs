// SPDX-License-Identifier: MIT
// What the page computes, against closed forms on synthetic heads. Argument: the folder of the
// modules.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { check, equal, finish, near, test } from "./harness.mjs";

const folder = pathToFileURL(`${process.argv[2]}/`);
const data = await import(new URL("data.js", folder));
const metrics = await import(new URL("metrics.js", folder));
const { knownFields, parseQuery, sortItems } = await import(new URL("query.js", folder));
const roles = await import(new URL("roles.js", folder));
const { windowOf } = await import(new URL("figures.js", folder));
const { readState, stateText, BEGINNING } = await import(new URL("state.js", folder));
const { changeOf, effectText, readChanges, shiftOf, withChange } = await import(new URL("live.js", folder));
const join = await import(new URL("join.js", folder));
const { colorBytes } = await import(new URL("color.js", folder));
const conv = await import(new URL("conv.js", folder));

const T = 8;

// Numbers of a head that does nothing in particular.
const NOTHING = {
    ...{ entropy: 1, broad: 0.5, confidence: 0.4, distance: 1, far: 0.1, first: 0.1, end: 0.1 },
    ...{ prev: 0.1, self: 0.1, next: 0.1, duplicate: 0, induction: 0, smoothed: 1, rare: 0 },
    ...{ question: null, says: null, reads: null, aer_says: null, aer_reads: null },
};
const NO_ROLE = {
    ...{ found: false, rule: "far", name: "far", score: 0.3, threshold: 1 / 3 },
    ...{ low: null, high: null, count: 1, next: "broad", next_score: 0.5, next_threshold: 0.9 },
};

// A head whose row i looks at columns as weightOf(i, j) says.
function makeHead(weightOf, { rows = T, columns = T, kind = "encoder", layer = 1, head = 1 } = {}) {
    const words = (count) => Array.from({ length: count }, (_, n) => `w${n}`);
    const weights = Float32Array.from({ length: rows * columns }, (_, n) =>
        weightOf(Math.floor(n / columns), n % columns),
    );
    return {
        sentence: 0,
        kind,
        layer,
        head,
        rows,
        columns,
        words: { rows, columns },
        causal: kind === "decoder",
        compact: false,
        measures: NOTHING,
        roleRecord: NO_ROLE,
        picture: { rows, columns, values: weights },
        width: 2,
        rowWords: words(rows),
        columnWords: words(columns),
        changed: [],
        loss: 0,
        valueNorms: new Float32Array(columns).fill(2),
        weights,
    };
}

const identity = makeHead((i, j) => Number(i === j));
const shift = makeHead((i, j) => Number(j === Math.max(0, i - 1)));
const uniform = makeHead(() => 1 / T);
const column = makeHead((_, j) => Number(j === 0));
const causal = makeHead((i, j) => (j <= i ? 1 / (i + 1) : 0), { kind: "decoder" });
const measured = (head, measures) => ({ ...head, measures: { ...NOTHING, ...measures } });

const withRole = (head, rule, name, score) => ({
    ...head,
    roleRecord: { ...NO_ROLE, found: true, rule, name, score },
});

// The rules themselves are the program's: test_roles.mjs compares.
await test("roles_on_one_sentence", () => {
    const nearly = roles.roleHere(identity);
    equal(nearly.role, "mixed", "nothing in particular");
    equal(nearly.score, null, "without a role");
    equal(nearly.runner.role, "far", "the nearest rule");
    const sink = roles.roleHere(withRole(causal, "sink", "sink: begin", 0.7));
    equal(`${sink.role} ${sink.letter} ${sink.score}`, "sink: begin K 0.7", "a role");
    equal(sink.over, "7 rows", "rows that have a choice");
    equal(sink.runner.role, "broad", "the next rule");
    const aligned = withRole(identity, "relation", "aligned: says", 0.9);
    aligned.roleRecord.count = 21;
    equal(roles.roleHere(aligned).over, "21 words", "words of a relation");
});

await test("roles_over_many_sentences", () => {
    const record = { found: true, rule: "offset", name: "previous", score: 0.97, low: 0.96 };
    const rest = { high: 0.98, count: 412, next: "self", next_score: 0.2 };
    const letter = (change) => roles.studiedRole({ ...record, ...rest, ...change }).letter;
    const role = roles.studiedRole({ ...record, ...rest });
    equal(role.letter, "P", "letter");
    equal(role.over, "412 cases, 95 % 0.96 to 0.98", "how sure");
    equal(role.runner.role, "self", "runner-up");
    const one = roles.studiedRole({ ...record, ...rest, low: null, high: null });
    equal(one.over, "412 cases", "one sentence has no interval");
    equal(letter({ name: "2 after" }), "N", "ahead");
    equal(letter({ rule: "relation", name: "aligned: says" }), "A", "aligned");
    equal(letter({ rule: "relation", name: "determiner-noun" }), "G", "of the grammar");
    equal(roles.studiedRole({ ...record, ...rest, found: false }).role, "mixed", "no role");
});

await test("every_role_has_a_letter_of_its_own", () => {
    const letters = Object.values(roles.RULES).map(({ letter }) => letter);
    equal(new Set(letters).size, letters.length, letters.join());
    for (const rule of "sink self duplicate induction question rare relation broad far".split(" "))
        check(rule in roles.RULES, `${rule}, as the program says it`);
});

await test("the_largest_entropy", () => {
    near(roles.largestEntropy(uniform), Math.log(T), 1e-12, "all columns");
    const wanted = [2, 3, 4, 5, 6, 7, 8].reduce((sum, n) => sum + Math.log(n), 0) / 7;
    near(roles.largestEntropy(causal), wanted, 1e-12, "causal: rows with a choice only");
    equal(roles.choosingRows(causal), 7, "rows of a decoder that have a choice");
    const joined = { ...uniform, words: { rows: 5, columns: 5 } };
    near(roles.largestEntropy(joined), Math.log(5), 1e-12, "of words, not of tokens");
    equal(roles.choosingRows(joined), 5, "rows of words");
    const nearest = { score: null, runner: { role: "far", score: 0.3, threshold: 1 / 3 } };
    equal(roles.runnerText(nearest), "nearest: far 0.30 (needs 0.33)", "a rule and its threshold");
    const far = { ...nearest, words: "looks far away", score: 0.5, threshold: 1 / 3 };
    equal(roles.roleTitle(far), "looks far away; score 0.50 (needs 0.33)", "in a tooltip");
});

// ------------------------------------------------------- compact weights -----

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// As src/page/page_weights.h says, written again.
function compactText({ rows, columns, causal: back, weights }) {
    let text = "";
    for (let i = 0; i < rows; i++) {
        const row = weights.subarray(i * columns, i * columns + (back ? i + 1 : columns));
        const most = Math.max(...row);
        text += Buffer.from(Float32Array.of(most).buffer).toString("base64").slice(0, 6);
        for (const weight of row) {
            const q = most > 0 ? Math.round(4095 * Math.sqrt(weight / most)) : 0;
            text += ALPHABET[q >> 6] + ALPHABET[q & 63];
        }
    }
    return text;
}

// A page with one kind of one compact head.
function compactPage(head) {
    const kind = {
        ...{ name: head.kind, layers: 1, heads: 1, rows: head.rows, columns: head.columns },
        ...{ causal: head.causal, compact: true, weights: [compactText(head)], measures: {} },
        roles: [NO_ROLE],
    };
    const sentence = { text: "", source: head.columnWords, target: head.columnWords };
    const page = { format: "mha-view-2", sentences: [{ ...sentence, kinds: [kind] }] };
    return data.readPage(JSON.stringify(page)).sentences[0].heads[head.kind][0];
}

await test("compact_weights_are_as_exact_as_they_say", () => {
    const size = 37;
    const share = (i, j) => Math.exp(-((i * 7 + j * 13) % 29) / 2) / 3;
    for (const kind of ["encoder", "decoder"]) {
        const exact = makeHead((i, j) => (kind === "decoder" && j > i ? 0 : share(i, j)), {
            ...{ kind, rows: size, columns: size },
        });
        const head = compactPage(exact);
        for (let i = 0; i < size; i++) {
            const row = data.rowOf(head, i);
            for (let j = 0; j < size; j++) {
                const wanted = exact.weights[i * size + j];
                const bound = data.weightError(head, i, wanted) * (1 + 1e-6) + 1e-9;
                near(row[j], wanted, bound, `${kind} ${i} ${j}`);
            }
        }
        check(data.weightError(head, 1, 0.01) < 1e-4, "which is not much");
        head.weights.forEach((weight, n) =>
            equal(weight, data.rowOf(head, Math.floor(n / size))[n % size], `all at once: ${n}`),
        );
    }
});

await test("a_row_of_zeros_is_zeros", () => {
    const head = compactPage(makeHead(() => 0));
    check(
        data.rowOf(head, 3).every((weight) => weight === 0),
        "no NaN",
    );
});

await test("numbers_with_an_error_have_the_digits_that_they_have", () => {
    equal(data.roundedText(0.123456, 0.0004), "0.1235", "four");
    equal(data.roundedText(0.1, 0), "0.1", "exact");
});

await test("a_window_is_a_part_of_a_matrix", () => {
    const matrix = {
        ...{ rows: 9, columns: 7, selected: 8, marks: [[8, 6]], visible: (i, j) => j <= i },
        rowWords: Array.from({ length: 9 }, (_, i) => `r${i}`),
        columnWords: Array.from({ length: 7 }, (_, j) => `c${j}`),
        values: Float64Array.from({ length: 63 }, (_, n) => n),
    };
    const part = windowOf(matrix, 8, 6, 4);
    equal(`${part.top} ${part.left} ${part.rows} ${part.columns}`, "5 3 4 4", "where");
    equal(part.values[0], 5 * 7 + 3, "the first value");
    equal(part.values[15], 62, "the last");
    equal(part.rowWords.join(), "r5,r6,r7,r8", "words");
    equal(`${part.selected} ${part.marks}`, "3 3,3", "what is marked");
    equal(part.visible(0, 3), false, "masked there too");
    equal(windowOf(matrix, 0, 0, 20).rows, 9, "no larger than all");
});

await test("divergence_is_0_for_the_same_and_ln_2_for_nothing_in_common", () => {
    equal(metrics.headDivergence(uniform, uniform), 0, "the same");
    near(metrics.rowDivergence([1, 0], [0, 1]), Math.LN2, 1e-12, "nothing in common");
    equal(metrics.rowVariation([1, 0], [0, 1]), 1, "total variation");
});

await test("long_heads_are_compared_on_some_rows", () => {
    const size = 256;
    const long = (place) =>
        makeHead((i, j) => Number(j === place(i)), { rows: size, columns: size });
    const a = long((i) => i);
    check(metrics.divergenceStep(a) > 1 && metrics.divergenceStep(identity) === 1, "steps");
    near(
        metrics.headDivergence(
            a,
            long((i) => size - 1 - i),
        ),
        Math.LN2,
        1e-6,
        "nothing in common",
    );
    equal(metrics.headDivergence(a, a), 0, "the same");
});

await test("the_largest_of_many", () => {
    const many = new Float64Array(500000);
    many[77] = 3;
    equal(metrics.largestOf(many), 3, "of more than fit into a call");
    equal(metrics.largestPlaces([1, 5, 2, 4], 2).join(), "1,3", "places, in their order");
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

// A row has read a word and says the next one, also of whole words.
await test("queries_go_by_the_word_said", () => {
    const head = {
        ...identity,
        kind: "cross",
        rows: 3,
        columns: 3,
        rowWords: ["<s>", "le", "ch"],
        saidWords: ["le", "ch", "at"],
        columnWords: ["the", "c", "at"],
        weights: Float32Array.of(0.9, 0.1, 0, 0, 0.8, 0.2, 0.4, 0, 0.6),
    };
    const largest = (one, query) => {
        const test = (least) => parseQuery(`${query}>=${least}`, []).test({ head: one });
        return [0.9, 0.8, 0.7, 0.6, 0.4, 0.1].find((least) => test(least - 1e-6)) ?? 0;
    };
    equal(largest(head, "attends(le -> the)"), 0.9, "the row that says it");
    equal(largest(head, "attends(ch -> c)"), 0.8, "another");
    equal(largest(head, "reads(le -> c)"), 0.8, "the row that has read it");
    equal(largest(head, "reads(le -> the)"), 0, "which looks elsewhere");
    equal(largest({ ...head, saidWords: null }, "attends(le -> c)"), 0.8, "nothing is said");
    const page = join.joinPage({
        sentences: [
            {
                source: ["the", "c", "at"],
                source_continues: [0, 0, 1],
                source_marks: [0, 0, 0],
                target: ["<s>", "le", "ch", "at"],
                target_continues: [0, 0, 0, 1],
                target_marks: [1, 0, 0, 0],
                kinds: [{ name: "cross" }],
                heads: {
                    cross: [
                        {
                            ...head,
                            rows: 4,
                            rowWords: ["<s>", "le", "ch", "at"],
                            saidWords: ["le", "ch", "at", "</s>"],
                            weights: Float32Array.of(0.9, 0.1, 0, 0, 0.5, 0.1, 0.2, 0.3, 0.5, 1, 0, 0),
                        },
                    ],
                },
            },
        ],
    });
    const [joined] = page.sentences[0].heads.cross;
    equal(joined.saidWords.join(" "), "le chat </s>", "whole words");
    equal(largest(joined, "attends(chat -> cat)"), 0.7, "mean of 0.6 and 0.8");
    equal(largest(joined, "attends(</s> -> the)"), 0.9, "the end");
});

await test("queries", () => {
    const items = [
        withRole(measured(identity, { self: 1 }), "self", "self", 1),
        withRole(measured({ ...shift, head: 2 }, { prev: 0.9 }), "offset", "previous", 0.9),
        withRole(measured({ ...uniform, layer: 2, loss: 0.3 }, { broad: 1 }), "broad", "broad", 1),
    ].map((head) => {
        const role = roles.roleHere(head);
        return { head, role, here: role };
    });
    const found = (text, sort = "layer") => {
        const { test: wanted, like } = parseQuery(text, items);
        return sortItems(items.filter(wanted), sort, like)
            .map(({ head }) => data.headName(head))
            .join(",");
    };
    equal(found("prev>0.5"), "encoder 1.2", "a number");
    equal(found("layer=1 self>=1"), "encoder 1.1", "two");
    equal(found("broad"), "encoder 2.1", "a role");
    equal(found("previous"), "encoder 1.2", "another");
    equal(found("sink>0.05"), found(""), "the larger of first and end");
    equal(found("attends(w3 -> w2)>0.9"), "encoder 1.2", "from a word to another");
    equal(found("like 2.1").split(",")[0], "encoder 2.1", "the likest is itself");
    equal(found("like encoder 2.1"), found("like encoder:2.1"), "with its kind");
    equal(found("like L2H1"), found("like 2.1"), "as older addresses have it");
    equal(found("", "loss").split(",")[0], "encoder 2.1", "sorted by what it costs");
    const fields = knownFields(items);
    check(fields.includes("entropy") && !fields.includes("delta"), `what is known: ${fields}`);
    for (const wrong of ["speed>3", "purple", "like 9.9", "like cross 1.1", "like x", "><"]) {
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

await test("colours_are_those_of_the_program", () => {
    const golden = JSON.parse(readFileSync(new URL("../golden/color_scale.json", import.meta.url)));
    for (const theme of ["light", "dark"]) {
        equal(golden[theme].length, 33, theme);
        golden[theme].forEach((colour, n) => {
            const bytes = [...colorBytes(theme, "sequential", n / 32)];
            const text = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
            equal(`#${text}`, colour, `${theme} ${n}/32`);
        });
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
    equal(
        shiftOf(
            other,
            makeHead(() => 0, { kind: "cross" }),
        ).rows,
        1,
        "up to the first other",
    );
});

await test("pieces_of_words_are_joined", () => {
    equal(join.wordsOf([0, 0, 1, 1, 0]).join(), "0,1,1,1,2", "words of tokens");
    const weights = [0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.1, 0.1, 0, 0.5, 0.25, 0.25, 1, 0, 0, 0];
    const joined = join.joinWeights(weights, [0, 1, 1, 2], [0, 1, 1, 2]);
    const wanted = [0.1, 0.5, 0.4, 0.25, 0.575, 0.175, 1, 0, 0];
    joined.forEach((weight, n) => near(weight, wanted[n], 1e-6, `cell ${n}`));
});

await test("marks_are_hidden_together", () => {
    const head = { rows: 1, columns: 4, weights: [0.4, 0.1, 0.3, 0.2], columnMarks: [1, 0, 0, 1] };
    const values = metrics.shownValues(head, "hidden");
    [0, 0.25, 0.75, 0].forEach((value, j) => near(values[j], value, 1e-9, `column ${j}`));
    const plain = metrics.shownValues({ ...head, columnMarks: [0, 0, 0, 1] }, "hidden");
    near(plain[3], 0.2 / 0.6, 1e-9, "without a begin mark only the first column is hidden");
});

await test("effects_have_words_for_every_model", () => {
    const [a, b] = [{ vector: [1, 0] }, { vector: [0.6, 0.8] }];
    check(effectText(b, a).includes("1 \u2212 cosine is 0.4000"), "an encoder");
    const [c, d] = [{ log_likelihood: [-1, -2, null] }, { log_likelihood: [-2, -3.5, null] }];
    check(effectText(d, c).includes("less likely, by 2.50 nats"), "a decoder");
    const [e, f] = [{ translation: "le chat" }, { translation: "chat" }];
    check(effectText(f, e).includes("instead of"), "a translator");
});

await test("nine_heads_are_a_convolution", () => {
    const side = conv.TILE_SIDE,
        heads = conv.headOutputs();
    equal(heads.length, 9, "heads");
    // The middle head returns the picture; the first looks up and to the left.
    for (let i = 1; i < side; i++)
        for (let j = 1; j < side; j++)
            near(heads[0][i * side + j], heads[4][(i - 1) * side + j - 1], 1e-12, `${i} ${j}`);
    check(new Set(heads[4].map((x) => x.toFixed(6))).size > 2, "the picture has shades");
    for (const name of ["edge", "blur", "sharpen", "emboss"]) {
        const taps = conv.convTaps(name);
        let most = 0;
        for (let i = 0; i < side; i++)
            for (let j = 0; j < side; j++) {
                const sum = conv.sumOfHeads(taps, i, j);
                near(sum, conv.directSum(taps, i, j), 1e-12, `${name} ${i} ${j}`);
                most = Math.max(most, Math.abs(sum));
            }
        check(most > 0.1, `${name} does something`);
    }
});

finish("test_metrics");
