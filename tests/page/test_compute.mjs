// SPDX-License-Identifier: MIT
// The view Compute in a real browser, and its data. Arguments: the folder of playwright-core and
// axe-core, the browser, pages of a model of 2 layers with 4 heads (with the steps of layer 1, of
// layer 2 with two sentences, and without; of the sentence of the lecture notes), one of the laboratory
// with that sentence, what "mha show --json" says of the first, and the address of "mha serve", which is
// empty if there is no server.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
    answersOf,
    axeProblems,
    dataOf,
    floats,
    focused,
    goTo,
    hashOf,
    overflow,
    startBrowser,
    text,
} from "./browser.mjs";
import { check, equal, finish, near, test } from "./harness.mjs";

const [toolsPath, browserPath, pagePath, secondPath, withoutPath] = process.argv.slice(2);
const [foxPath, labPath, showPath, address] = process.argv.slice(7);
const { open, openAddress, problems, end } = await startBrowser(
    join(toolsPath, "node_modules/playwright-core"),
    browserPath,
);
const truth = dataOf(pagePath);
const STEPS =
    "whole input norm project split scores scale softmax values join output residual forward result";

// ------------------------------------------------------------- the data -----

function half(bits) {
    const fraction = bits & 1023,
        exponent = (bits >> 10) & 31;
    const size =
        exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
    return bits & 0x8000 ? -size : size;
}

function numbers(packed) {
    if (!packed.startsWith(".")) return floats(packed);
    const bytes = Buffer.from(packed.slice(1), "base64");
    return Array.from({ length: bytes.length / 2 }, (_, n) => half(bytes.readUInt16LE(2 * n)));
}

function stepsOf(kind, data = truth, sentence = 0) {
    return data.sentences[sentence].steps.find((steps) => steps.kind === kind);
}

function kindOf(name, data = truth) {
    return data.sentences[0].kinds.find((kind) => kind.name === name);
}

function matricesOf(kind, data = truth) {
    return data.matrices.find((matrices) => matrices.kind === kind);
}

// x W^T + bias.
function linear(x, rows, { outputs, inputs, weight, bias }) {
    const w = numbers(weight),
        b = numbers(bias);
    return Array.from({ length: rows * outputs }, (_, at) => {
        const i = Math.floor(at / outputs),
            n = at % outputs;
        let sum = b[n];
        for (let e = 0; e < inputs; e++) sum += x[i * inputs + e] * w[n * inputs + e];
        return sum;
    });
}

function same(got, wanted, tolerance, what) {
    equal(got.length, wanted.length, `${what}: how many`);
    const worst = got.reduce((most, value, n) => Math.max(most, Math.abs(value - wanted[n])), 0);
    check(worst <= tolerance, `${what}: ${worst} apart`);
}

// Heads side by side: [heads][rows][width] as [rows][heads * width].
function joined(values, heads, rows, width) {
    return Array.from({ length: rows * heads * width }, (_, at) => {
        const i = Math.floor(at / (heads * width)),
            j = at % (heads * width);
        return values[(Math.floor(j / width) * rows + i) * width + (j % width)];
    });
}

await test("every_step_follows_from_the_one_before", () => {
    for (const name of ["encoder", "decoder", "cross"]) {
        const steps = stepsOf(name),
            kind = kindOf(name),
            matrices = matricesOf(name),
            { rows, columns, width } = steps;
        const layer = (key, count) => floats(kind[key]).slice(0, kind.heads * count * kind.width);
        const input = numbers(steps.input),
            keys = steps.memory ? numbers(steps.memory) : input;
        const side = (values, count) => joined(values, kind.heads, count, kind.width);
        same(side(layer("q", rows), rows), linear(input, rows, matrices.q), 1e-5, `${name} Q`);
        same(side(layer("k", columns), columns), linear(keys, columns, matrices.k), 1e-5, "K");
        same(side(layer("v", columns), columns), linear(keys, columns, matrices.v), 1e-5, "V");
        const concat = side(numbers(steps.heads), rows);
        same(linear(concat, rows, matrices.o), numbers(steps.added), 1e-5, `${name} W_O`);
        const sum = numbers(steps.stream).map((x, n) => Math.fround(x + numbers(steps.added)[n]));
        same(numbers(steps.joined), sum, 0, `${name}: the sum, to the bit`);
        equal(steps.result !== undefined, name !== "decoder", `${name}: a feed-forward follows`);
        if (!steps.result) continue;
        const after = sum.map((x, n) => Math.fround(x + numbers(steps.ff_added)[n]));
        same(numbers(steps.result), after, 0, `${name}: after the feed-forward`);
        check(numbers(steps.inside).every((x) => x >= 0), "ReLU");
        equal(width, 16, "width");
    }
    const { words, codes, stream } = stepsOf("encoder");
    same(numbers(stream), numbers(words).map((x, n) => x + numbers(codes)[n]), 1e-6, "embedding");
});

await test("the_second_layer_begins_where_the_first_ends", () => {
    const second = dataOf(secondPath);
    equal(stepsOf("encoder", second).layer, 2, "layer");
    same(numbers(stepsOf("encoder", second).stream), numbers(stepsOf("encoder").result), 0, "X");
    check(stepsOf("cross", second, 1) !== undefined, "of each sentence");
    equal(dataOf(withoutPath).matrices, undefined, "none are asked for");
});

await test("weights_are_those_of_mha_show", () => {
    const { maps } = JSON.parse(readFileSync(showPath, "utf8"));
    for (const { kind: name, layer, head, cells } of maps) {
        const kind = kindOf(name);
        const weights = floats(kind.weights[(layer - 1) * kind.heads + head - 1]);
        cells
            .flat()
            .forEach((cell, n) => equal(Math.fround(cell), weights[n], `${name} ${layer}.${head}`));
    }
});

// ------------------------------------------------------------- the page -----

async function close(page) {
    await page.context().close();
}

await test("steps_by_keyboard_and_by_mouse", async () => {
    const page = await open(pagePath, "view=compute");
    for (const name of STEPS.split(" ")) {
        equal(await page.locator('[aria-current="step"]').getAttribute("id"), `step-${name}`, name);
        await page.keyboard.press("ArrowRight");
    }
    check(await page.locator("#step-next").isDisabled(), "the last step has no next");
    await page.keyboard.press("ArrowLeft");
    check((await hashOf(page)).includes("step=forward"), "the address has the step");
    await page.click("#step-back");
    check((await hashOf(page)).includes("step=residual"), "a step back");
    await page.reload();
    await page.waitForSelector("#step-title");
    equal(await page.locator('[aria-current="step"]').getAttribute("id"), "step-residual", "again");
    await page.click("#step-whole");
    await page.click("#box-head-3");
    check(/step=project/.test(await hashOf(page)), "a box is a step");
    equal(await page.locator("#head").inputValue(), "3", "and a head");
    await close(page);
});

await test("play_goes_on_by_itself", async () => {
    const page = await open(pagePath, "view=compute&step=residual");
    await page.clock.install();
    await page.click("#step-play");
    await page.clock.runFor(4000);
    check((await hashOf(page)).includes("step=forward"), "the next step");
    await page.click("#step-play");
    await page.clock.runFor(9000);
    check((await hashOf(page)).includes("step=forward"), "it stops");
    await close(page);
});

// The word of the row in "NAME[word, column] ".
const rowOf = (where) => /\[(.*), /.exec(where)[1];

// The value that the page says of cell (i, j) of a matrix, and the whole explanation.
async function explained(page, id, i, j) {
    await page.focus(`#m-${id}`);
    await page.keyboard.press("ArrowRight");
    for (let n = 0; n < i; n++) await page.keyboard.press("ArrowDown");
    for (let n = 0; n < j; n++) await page.keyboard.press("ArrowRight");
    return { value: Number(await text(page, "#explain-value")), all: await text(page, "#explain") };
}

await test("cells_explain_themselves", async () => {
    const kind = kindOf("encoder"),
        steps = stepsOf("encoder"),
        width = kind.width;
    const value = async (step, id, wanted, head = 2) => {
        const page = await open(pagePath, `view=compute&step=${step}&head=${head}`);
        const { value: said, all } = await explained(page, id, 2, 1);
        equal(Math.fround(said), Math.fround(wanted), `${step}: ${all}`);
        await close(page);
        return all;
    };
    const of = (array, head, rows) => floats(array)[((head - 1) * rows + 2) * width + 1];
    const query = await value("project", "q", of(kind.q, 2, kind.rows));
    check(/\u03a3 of 16 products/.test(query) && query.includes("bias"), query);
    await value("softmax", "weights", floats(kind.weights[1])[2 * kind.columns + 1]);
    await value("values", "out", numbers(steps.heads)[(kind.rows + 2) * width + 1]);
    await value("join", "concat", numbers(steps.heads)[2 * width + 1]);
    const output = await value("output", "added", numbers(steps.added)[2 * 16 + 1]);
    check(output.includes("head "), output);
    await value("norm", "input", numbers(steps.input)[2 * 16 + 1]);
    await value("residual", "joined", numbers(steps.joined)[2 * 16 + 1]);
    const forward = await value("forward", "ff_added", numbers(steps.ff_added)[2 * 16 + 1]);
    check(forward.includes("does not have the matrix"), forward);
    await value("result", "result", numbers(steps.result)[2 * 16 + 1]);
});

await test("the_mouse_explains_too", async () => {
    const page = await open(pagePath, "view=compute&step=values");
    const box = await page.locator("#m-out").boundingBox();
    await page.mouse.move(box.x + 0.8 * box.width, box.y + 0.5 * box.height);
    check((await text(page, "#explain")).includes("products"), await text(page, "#explain"));
    await close(page);
});

await test("a_masked_cell_says_so", async () => {
    const page = await open(pagePath, "view=compute&kind=decoder&step=scale");
    const { all } = await explained(page, "scaled", 0, 2);
    check(all.includes("\u2212\u221e"), all);
    await close(page);
});

await test("some_heads_are_joined", async () => {
    const page = await open(pagePath, "view=compute&step=join&heads=1,3");
    equal(await page.locator(".equation").first().locator("canvas").count(), 2, "strips");
    check((await text(page, ".compute")).includes("rows of 8"), "the width of two heads");
    await page.click("#heads-2");
    check((await hashOf(page)).includes("heads=1%2C2%2C3"), await hashOf(page));
    await page.click("#step-output");
    const { all } = await explained(page, "added", 0, 0);
    check(all.includes("the other heads (1)"), all);
    await page.click("#heads-all");
    check(!(await hashOf(page)).includes("heads="), "all of them");
    await close(page);
});

// Whether the middle of an element is on the screen, with nothing before it.
// A window that was resized is drawn again, so it may take a moment.
function isSeen(page, selector) {
    const seen = page.waitForFunction(
        (selector) => {
            document.getElementById("explain").scrollIntoView({ block: "end" });
            const element = document.querySelector(selector),
                { left, right, top, bottom } = element.getBoundingClientRect(),
                first = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
            return top >= 0 && bottom <= window.innerHeight && element.contains(first);
        },
        selector,
        { timeout: 10000 },
    );
    return seen.then(
        () => true,
        () => false,
    );
}

// The outputs of some heads, joined and multiplied with W_O.
function timesOutput(data, chosen) {
    const { rows, heads } = stepsOf("encoder", data),
        { heads: count, width } = kindOf("encoder", data),
        { o } = matricesOf("encoder", data);
    const concat = joined(numbers(heads), count, rows, width).map((x, place) =>
        chosen.includes(1 + Math.floor((place % (count * width)) / width)) ? x : 0,
    );
    const none = Buffer.alloc(4 * o.outputs).toString("base64");
    return { values: linear(concat, rows, { ...o, bias: none }), columns: o.outputs };
}

// The state that chapter 4 names, on pages of its sentence: of the laboratory, and of this test's model,
// from a file and live. A window of height pixels has all of its figures.
await test("the_joined_heads_of_the_lecture_notes_times_w_o", async () => {
    const chapter = new URL("../../docs/course/04_multi_head.md", import.meta.url);
    const [, state] = /`#(view=compute[^`]*&text=[^`]*)`/.exec(readFileSync(chapter, "utf8"));
    const words = new URLSearchParams(state).get("text");
    equal(words, "The quick brown fox jumps", "the sentence");
    const dull = dataOf(foxPath),
        laboratory = dataOf(labPath);
    const pages = [
        { page: await open(labPath, state), data: laboratory, height: 760 },
        { page: await open(foxPath, state), data: dull, height: 1000 },
    ];
    if (address)
        pages.push({ page: await openAddress(address, state), data: dull, height: 1000 });
    for (const { page, data, height } of pages) {
        const [{ source }] = data.sentences;
        equal(source.slice(0, 5).join(" "), words.toLowerCase(), "the words");
        await page.setViewportSize({ width: 1300, height });
        await page.waitForSelector("#m-product");
        await page.waitForFunction((title) => document.title.endsWith(title), words);
        for (const id of ["strip-1", "strip-2", "strip-3", "strip-4", "concat", "wo", "product"])
            check(await isSeen(page, `#m-${id}`), `${id} is on the screen`);
        for (const chosen of [
            [1, 2, 3, 4],
            [1, 3, 4],
        ]) {
            const { values, columns } = timesOutput(data, chosen);
            const { value, all } = await explained(page, "product", 2, 1);
            const terms = chosen.length * kindOf("encoder", data).width;
            check(all.startsWith(`output[brown, 2] = \u03a3 of ${terms} products`), all);
            near(value, values[2 * columns + 1], 1e-6, all);
            if (chosen.length === 4) await page.click("#heads-2");
        }
        await close(page);
    }
});

await test("what_a_page_does_not_have_is_said", async () => {
    const other = await open(pagePath, "view=compute&layer=2");
    check((await text(other, "#compute-message")).includes("--layer 2"), "another layer");
    await close(other);
    const page = await open(withoutPath, "view=compute");
    check((await text(page, "#compute-message")).includes("without"), "no steps");
    await close(page);
});

await test("the_live_page_asks_for_steps", async () => {
    if (!address) return;
    const page = await openAddress(address, "view=compute&kind=cross&layer=2&step=forward");
    await page.waitForSelector("#m-ff_added");
    const { all } = await explained(page, "ff_added", 1, 1);
    check(/\u03a3 of 24 products/.test(all), `the matrix is there: ${all}`);
    const answered = answersOf(page);
    await page.keyboard.press("x");
    await page.waitForSelector("#reopen-all");
    await answered();
    await page.click("#step-values");
    const changed = await explained(page, "out", 1, 1);
    equal(changed.value, 0, "a disabled head adds nothing");
    await close(page);
});

// Two answers follow on a head that is closed; the cell that is read stays, with its new numbers.
await test("the_cell_that_is_read_stays", async () => {
    if (!address) return;
    const page = await openAddress(address, "view=compute&kind=encoder&head=2&step=values");
    await page.waitForSelector("#m-out");
    const before = await explained(page, "out", 2, 1);
    const where = before.all.slice(0, before.all.indexOf("="));
    const answered = answersOf(page);
    await page.keyboard.press("x");
    await page.waitForSelector("#reopen-all");
    await answered();
    const after = await text(page, "#explain");
    if (!check(after.startsWith(where), `still ${where}: ${after}`)) return close(page);
    equal(Number(await text(page, "#explain-value")), 0, "the number of the disabled head");
    equal(await focused(page), "m-out", "the figure keeps the focus");
    check((await text(page, "#m-out-value")).startsWith(rowOf(where)), "and its cursor");
    await page.keyboard.press("ArrowUp");
    check(!(await text(page, "#explain")).startsWith(where), "from which the keys move on");
    await page.click("#step-softmax");
    check((await text(page, "#explain")).startsWith("Point at a cell"), "another step begins anew");
    await close(page);
});

await test("no_violation_of_accessibility", async () => {
    const page = await open(pagePath, "view=compute");
    for (const step of ["whole", "project", "softmax", "join", "output"])
        for (const theme of ["light", "dark"]) {
            await goTo(page, `view=compute&step=${step}&theme=${theme}`);
            const found = await axeProblems(page, toolsPath);
            equal(found.length, 0, `${step}, ${theme}: ${found.join("; ")}`);
        }
    await close(page);
});

await test("the_convolution_by_keyboard", async () => {
    const page = await open(pagePath);
    await page.keyboard.press("9");
    await page.waitForSelector("#m-sum");
    equal(await page.locator("[id^=m-conv-]").count(), 9, "heads");
    await page.click("#kernel-blur");
    check((await hashOf(page)).includes("kernel=blur"), await hashOf(page));
    const { value, all } = await explained(page, "sum", 2, 3);
    check(/\u03a3 of 9 products/.test(all) && all.includes("without attention"), all);
    near(value, Number(/without attention: ([\d.]+)/.exec(all)?.[1]), 6e-5, all);
    const moved = await explained(page, "conv-1", 2, 3);
    check(moved.all.includes("largest at (2, 3)"), moved.all);
    for (const theme of ["light", "dark"]) {
        await goTo(page, `view=conv&kernel=constructor&theme=${theme}`);
        equal((await axeProblems(page, toolsPath)).join("; "), "", theme);
    }
    await page.setViewportSize({ width: 390, height: 800 });
    await page.waitForTimeout(300);
    check((await overflow(page)) <= 0, `at 390: ${await overflow(page)}`);
    await close(page);
});

await test("a_hostile_address_does_no_harm", async () => {
    const hostile = "<img src=x onerror=window.broken=1>";
    for (const hash of [
        `view=compute&step=${encodeURIComponent(hostile)}&heads=${encodeURIComponent(hostile)}`,
        "view=compute&step=__proto__&heads=1e9,-3,0,,NaN&layer=99&head=-7&row=1e99",
        "view=constructor&kind=toString&step=constructor&sentence=-1",
        "view=compute&heads=" + "1,".repeat(20000),
    ]) {
        const page = await open(pagePath, hash);
        equal(await page.evaluate(() => window.broken), undefined, hash);
        check((await page.locator("#view > *").count()) > 0, `something is shown: ${hash}`);
        await close(page);
    }
});

await test("narrow_and_wide_windows_do_not_scroll_sideways", async () => {
    for (const width of [390, 2560]) {
        const page = await open(pagePath, "", { viewport: { width, height: 900 } });
        for (const step of STEPS.split(" ")) {
            await goTo(page, `view=compute&step=${step}`);
            check((await overflow(page)) <= 0, `${step} at ${width}: ${await overflow(page)}`);
        }
        await close(page);
    }
});

await test("no_console_error_and_no_request_leaves_the_file", () => {
    equal(problems.length, 0, problems.slice(0, 5).join("; "));
});

await end();
finish("test_compute");
