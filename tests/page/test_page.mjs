// SPDX-License-Identifier: MIT
// The page of "mha view" in a real browser. Arguments: playwright-core, the browser, and pages of a
// model of 2 layers with 2 heads: of a sentence of the grammar with the grammar's translation and
// no word twice; of two sentences; of a hostile text; with what "mha ablate" printed; and a page of
// what cross_weights.mjs makes.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dataOf, dataPlace, floats, focused, hashOf, startBrowser, text } from "./browser.mjs";
import { check, equal, finish, near, test } from "./harness.mjs";
import { visitViews } from "./nine_views.mjs";

const [playwrightPath, browserPath, pagePath, twoPath, hostilePath, costPath, crossPath] =
    process.argv.slice(2);
const {
    open: openPath,
    save,
    scratch,
    problems,
    end,
} = await startBrowser(playwrightPath, browserPath);

// ------------------------------------------------------------- the truth -----

const truth = dataOf(pagePath);
const shown = (word) => word.replace(/^<(.*)>$/, "\u2039$1\u203a");

function kindOf(name, data = truth) {
    return data.sentences[0].kinds.find((kind) => kind.name === name);
}

function weightsOf(name, layer, head, data = truth) {
    const kind = kindOf(name, data);
    return floats(kind.weights[(layer - 1) * kind.heads + head - 1]);
}

// ------------------------------------------------------------- the page -----

function open(hash = "", { path = pagePath, ...options } = {}) {
    return openPath(path, hash, options);
}

async function close(page) {
    await page.context().close();
}

async function cardNames(page) {
    return page.locator(".card-head > b").allTextContents();
}

// What a figure says under points of the mouse all over it, each text once.
async function saidUnderMouse(page, id) {
    await page.locator(`#${id}`).scrollIntoViewIfNeeded();
    const box = await page.locator(`#${id}`).boundingBox();
    const said = new Set();
    for (let y = 0.04; y < 1; y += 0.09)
        for (let x = 0.04; x < 1; x += 0.09) {
            await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
            said.add(await text(page, `#${id}-value`));
        }
    return [...said];
}

// -------------------------------------------------------------- the tests -----

for (const by of ["keys", "clicks"])
    await test(`all_nine_views_by_${by}`, async () => {
        const page = await open();
        await visitViews(page, truth, by, check);
        await close(page);
    });

await test("the_wall_has_every_head", async () => {
    const page = await open();
    for (const kind of truth.sentences[0].kinds) {
        await page.click(`#kind-${kind.name}`);
        equal(await page.locator(".card").count(), kind.layers * kind.heads, kind.name);
    }
    const label = await page.locator("#card-1-1").getAttribute("aria-label");
    check(/^cross 1\.1: .*entropy .* nats, at most/.test(label), `a head in words: ${label}`);
    await close(page);
});

await test("the_wall_by_keyboard", async () => {
    const page = await open();
    await page.focus("#card-1-1");
    await page.keyboard.press("ArrowRight");
    equal(await focused(page), "card-1-2", "right");
    await page.keyboard.press("ArrowDown");
    equal(await focused(page), "card-2-2", "down");
    await page.keyboard.press("Enter");
    check((await hashOf(page)).includes("view=head"), "Enter opens the head");
    equal(await page.locator("#layer").inputValue(), "2", "layer");
    equal(await page.locator("#head").inputValue(), "2", "head");
    await close(page);
});

await test("heads_are_found", async () => {
    const page = await open();
    await page.keyboard.press("/");
    await page.keyboard.type("layer<2");
    equal(await page.locator(".card").count(), kindOf("encoder").heads, "of the first layer");
    await page.fill("#find", "like 2.1");
    equal((await cardNames(page))[0], "encoder 2.1", "the likest is itself");
    await page.fill("#find", "speed>3");
    check((await text(page, "#wall-message")).includes("no such number"), "what is not understood");
    await page.fill("#find", "");
    await page.selectOption("#sort", "entropy");
    equal(await page.locator(".card").count(), 4, "sorted");
    await page.click("#draw-toggle");
    await page.click("#preset-diagonal");
    equal(await page.locator('.pad-cell[aria-pressed="true"]').count(), 8, "a diagonal is drawn");
    await page.focus("#pad-1");
    await page.keyboard.press("Space");
    equal(await page.locator('.pad-cell[aria-pressed="true"]').count(), 9, "painted by a key");
    await page.locator("#pad-2").hover();
    await page.mouse.down();
    await page.mouse.up();
    equal(await page.locator('.pad-cell[aria-pressed="true"]').count(), 10, "painted by the mouse");
    await close(page);
});

await test("letters_have_a_legend", async () => {
    const page = await open();
    const letters = await page.locator(".card .badge b").allTextContents();
    const shown = await page.locator(".legend > button .badge b").allTextContents();
    equal([...new Set(letters)].sort().join(), shown.sort().join(), "those of the wall");
    await page.focus("#legend-all");
    await page.keyboard.press("Enter");
    equal(await page.locator(".legend dl dt:visible").count(), 14, "all of them");
    const badge = page.locator(".legend > button").first();
    const count = Number(/(\d+)$/.exec(await badge.textContent())[1]);
    await badge.click();
    equal(await page.locator(".card").count(), count, "a letter finds its heads");
    await close(page);
});

await test("what_ablate_found_stands_beside_the_head", async () => {
    const page = await open("view=head&kind=cross&layer=2&head=1", { path: costPath });
    const cost = dataOf(costPath).ablation,
        own = cost.cross[2];
    const told = await text(page, "#ablation");
    check(told.includes(`over ${cost.sentences} sentences`), told);
    check(told.includes(Math.abs(own.delta).toPrecision(3)), `${own.delta} in ${told}`);
    check(told.includes(`95 % ${own.low.toPrecision(3)} to ${own.high.toPrecision(3)}`), told);
    check(told.includes(`${(100 * own.words_right).toFixed(2)} %`), told);
    const csv = (await save(page, "#layer-csv")).bytes.toString().trim().split("\n");
    equal(csv.length, 3, "all heads of the layer");
    csv.slice(1).forEach((line, n) => {
        const [name, ...numbers] = line.split(",");
        const { delta, low, high } = cost.cross[2 + n];
        equal(name, `cross 2.${n + 1}`, "head");
        [delta, low, high].forEach((value, k) =>
            near(Number(numbers[k]), value, 1e-6 * Math.abs(value), `${name}, number ${k}`),
        );
    });
    await page.keyboard.press("1");
    await page.selectOption("#sort", "delta");
    const order = cost.cross
        .map(({ delta }, n) => ({ delta, name: `cross ${1 + (n >> 1)}.${1 + (n % 2)}` }))
        .sort((a, b) => b.delta - a.delta);
    equal((await cardNames(page))[0], order[0].name, "the most needed head first");
    await close(page);
    const without = await open("view=head");
    equal(await without.locator("#ablation").count(), 0, "nothing where nothing was measured");
    await close(without);
});

await test("values_by_keyboard_are_those_of_the_data", async () => {
    for (const kind of ["encoder", "decoder", "cross"]) {
        const page = await open(`view=head&kind=${kind}&layer=2&head=1`);
        const { rows, columns } = kindOf(kind),
            weights = weightsOf(kind, 2, 1);
        await page.focus("#main");
        await page.keyboard.press("ArrowDown");
        for (let i = 0; i < rows; i++) {
            for (let j = 0; j < columns; j++) {
                const said = await text(page, "#main-value");
                if (kind === "decoder" && j > i) check(said.includes("masked"), said);
                else
                    equal(Math.fround(Number(said.split(": ")[1])), weights[i * columns + j], said);
                await page.keyboard.press("ArrowRight");
            }
            await page.keyboard.press("Home");
            await page.keyboard.press("ArrowDown");
        }
        await close(page);
    }
});

await test("values_under_the_mouse_are_those_of_the_data", async () => {
    const page = await open("view=head&kind=cross&layer=1&head=2");
    const { columns } = kindOf("cross"),
        weights = weightsOf("cross", 1, 2);
    const [{ source, target, expected }] = truth.sentences;
    const rows = target.map((word, i) => `${shown(word)} \u25b8 ${shown(expected[i])}`);
    const box = await page.locator("#main").boundingBox();
    const seen = new Set();
    for (let y = 0.2; y < 0.9; y += 0.06)
        for (let x = 0.2; x < 0.95; x += 0.06) {
            await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
            const said = await text(page, "#main-value");
            const found = /^(.*) \u2192 (.*): (.*)$/.exec(said);
            if (!found) continue;
            const i = rows.indexOf(found[1]),
                j = source.map(shown).indexOf(found[2]);
            seen.add(`${i} ${j}`);
            equal(Math.fround(Number(found[3])), weights[i * columns + j], said);
        }
    check(seen.size > 20, `only ${seen.size} cells were met`);
    await close(page);
});

await test("other_numbers_of_a_head", async () => {
    const page = await open("view=head&kind=encoder&layer=1&head=2&mode=norm");
    const kind = kindOf("encoder"),
        norms = floats(kind.value_norms).slice(kind.columns, 2 * kind.columns);
    await page.focus("#main");
    await page.keyboard.press("ArrowRight");
    near(
        Number((await text(page, "#main-value")).split(": ")[1]),
        weightsOf("encoder", 1, 2)[0] * norms[0],
        1e-6,
        "times the value's norm",
    );
    await page.keyboard.press("m");
    equal((await text(page, "#main-value")).split(": ")[1], "0", "the first word is hidden");
    await page.keyboard.press("a");
    check((await hashOf(page)).includes("form=arcs"), "arcs");
    equal(await page.locator(".near li").count(), 3, "nearest heads");
    await close(page);
});

await test("a_cell_is_taken_apart", async () => {
    const page = await open("view=head&kind=encoder&layer=2&head=2");
    await page.focus("#main");
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"])
        await page.keyboard.press(key);
    near(
        Number(await text(page, "#cell-weight")),
        weightsOf("encoder", 2, 2)[kindOf("encoder").columns + 1],
        2e-5,
        "computed again from queries and keys",
    );
    check((await hashOf(page)).includes("row=1&column=1"), "the address has it");
    equal(await focused(page), "main", "the focus stays");
    await page.goto(`${page.url().split("#")[0]}#view=head&kind=decoder&row=0&column=2`);
    check((await text(page, ".cell-room")).includes("mask"), "a masked cell says so");
    await close(page);
});

await test("two_heads_and_two_sentences_compared", async () => {
    const page = await open("view=compare&kind=encoder&layer=1&head=1&other=0.encoder.2.2", {
        path: twoPath,
    });
    const two = dataOf(twoPath);
    const [a, b] = [weightsOf("encoder", 1, 1, two), weightsOf("encoder", 2, 2, two)];
    await page.click("#difference-table");
    const cells = await page.locator("figure:has(#difference) tbody td").allTextContents();
    equal(cells.length, a.length, "cells");
    cells.forEach((cell, n) => near(Number(cell), a[n] - b[n], 1e-6, `cell ${n}`));
    await page.selectOption("#other-sentence", "1");
    check((await hashOf(page)).includes("other=1.encoder.2.2"), "the second sentence");
    check(await page.locator("#difference").isVisible(), "common words have a difference");
    await close(page);
});

await test("compare_by_mouse_and_by_keyboard", async () => {
    const page = await open("view=compare&kind=cross&layer=1&head=2&other=0.cross.2.1");
    const { columns } = kindOf("cross"),
        [a, b] = [weightsOf("cross", 1, 2), weightsOf("cross", 2, 1)];
    await page.click("#difference-table");
    const names = (selector) => page.locator(`figure:has(#difference) ${selector}`).allTextContents();
    const [rows, tops] = [await names("tbody th"), (await names("thead th")).slice(-columns)];
    const cells = { first: a, second: b, difference: a.map((weight, n) => weight - b[n]) };
    const agrees = (id, said) => {
        const [, row, column, value] = /^(.*) \u2192 (.*): (\S+)/.exec(said) ?? [];
        if (value === undefined) return false;
        const wanted = cells[id][rows.indexOf(row) * columns + tops.indexOf(column)];
        near(Number(value), wanted, 1e-6, `${id}: ${said}`);
        return true;
    };
    for (const id of Object.keys(cells)) {
        const met = (await saidUnderMouse(page, id)).filter((said) => agrees(id, said));
        check(met.length > 20, `${id} by mouse: only ${met.length} cells`);
        await page.focus(`#${id}`);
        for (const key of ["ArrowRight", "ArrowDown", "ArrowRight"]) {
            await page.keyboard.press(key);
            const said = await text(page, `#${id}-value`);
            check(agrees(id, said), `${id} by ${key}: ${said}`);
        }
    }
    await close(page);
});

await test("alignment_and_rollout", async () => {
    const page = await open("view=align");
    equal(await page.locator("[id^=error-]").count(), 4, "an error rate for each cross head");
    await page.click("#reads-1");
    check((await hashOf(page)).includes("reads=1"), "the other reading");
    await page.selectOption("#align-layer", "1");
    await page.click("#mix-head");
    check((await text(page, "figure h3")).includes("cross 1.1"), "one head");
    for (const kind of ["encoder", "decoder", "cross"]) {
        await page.goto(`${page.url().split("#")[0]}#view=flow&kind=${kind}&layer=2`);
        await page.click("#main-table");
        const rows = await page
            .locator("figure:has(#main) tbody tr")
            .evaluateAll((list) =>
                list.map((row) =>
                    [...row.querySelectorAll("td")].reduce(
                        (sum, cell) => sum + Number(cell.textContent),
                        0,
                    ),
                ),
            );
        rows.forEach((sum, i) => near(sum, 1, 1e-5, `${kind}: row ${i}`));
    }
    await close(page);
});

// Shares of each level of the flow, by name of the level.
function flowLevels(csv) {
    const levels = new Map();
    for (const line of csv.toString().trim().split("\n").slice(1)) {
        const [level, word, share] = line.split(",");
        if (!levels.has(level)) levels.set(level, []);
        levels.get(level).push({ word, share: Number(share) });
    }
    return levels;
}

await test("the_flow_of_a_word", async () => {
    for (const [kind, names] of [
        ["encoder", "encoder 2,encoder 1,words"],
        ["cross", "cross 2,encoder 2,encoder 1,words"],
    ]) {
        const page = await open(`view=flow&kind=${kind}&layer=2&row=1`);
        const levels = flowLevels((await save(page, "#flow-csv")).bytes);
        equal([...levels.keys()].join(), names, "from the top down");
        for (const [name, words] of levels)
            near(
                words.reduce((sum, { share }) => sum + share, 0),
                1,
                1e-5,
                `${name} is a whole`,
            );
        await page.click("#main-table");
        const cells = await page
            .locator("figure:has(#main) tbody tr:nth-child(2) td")
            .allTextContents();
        levels
            .get("words")
            .forEach(({ word, share }, n) =>
                near(share, Number(cells[n]), 1e-5, `as in the map: ${word}`),
            );
        check(
            /^Attention followed down from .* \(rollout\)$/.test(
                await page.locator("figure:has(#flow) h3").textContent(),
            ),
            "a title that says what it is",
        );
        const caption = await page.locator("figure:has(#flow) figcaption").textContent();
        check(/without .*values and feed-forward layers/.test(caption), "what it leaves out");
        equal(/decoder\u2019s self-attention/.test(caption), kind === "cross", "of the decoder");
        const svg = (await save(page, "#flow-svg")).bytes.toString();
        check((svg.match(/<path/g) ?? []).length > cells.length, "bands in the SVG");
        const met = (await saidUnderMouse(page, "flow"))
            .map((said) => /^(.*) \((.*)\): (\S+) of/.exec(said))
            .filter(Boolean);
        check(met.length > 6, `${kind}: only ${met.length} words under the mouse`);
        for (const [said, word, level, share] of met)
            check(
                levels.get(level).some((one) => one.word === word && Math.abs(one.share - share) < 1e-6),
                `by mouse: ${said}`,
            );
        await page.focus("#flow");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("ArrowDown");
        check(/ of \u201c/.test(await text(page, "#flow-value")), "a word by keyboard");
        await close(page);
    }
});

await test("exports_are_what_is_shown", async () => {
    const page = await open("view=head&kind=encoder&layer=1&head=1");
    const { rows, columns } = kindOf("encoder"),
        weights = weightsOf("encoder", 1, 1);
    const csv = await save(page, "#main-csv");
    const lines = csv.bytes.toString().trim().split("\n");
    equal(csv.name, "mha-encoder-1.1-raw.csv", "name");
    equal(lines.length, rows + 1, "lines");
    lines.slice(1).forEach((line, i) =>
        line
            .split(",")
            .slice(1)
            .forEach((value, j) =>
                equal(Math.fround(Number(value)), weights[i * columns + j], `${i}, ${j}`),
            ),
    );
    const svg = (await save(page, "#main-svg")).bytes;
    check(svg.toString().startsWith("<svg xmlns"), "an SVG");
    check(svg.toString().match(/<rect/g).length > rows * columns, "with all cells");
    check(svg.equals((await save(page, "#main-svg")).bytes), "the same bytes again");
    const png = (await save(page, "#main-png")).bytes;
    equal(png.subarray(0, 8).toString("hex"), "89504e470d0a1a0a", "a PNG");
    const box = await page.locator("#main").boundingBox();
    near(png.readUInt32BE(16), 2 * box.width, 3, "twice as wide as shown");
    await close(page);
});

await test("keys_and_themes", async () => {
    const page = await open("", { path: twoPath });
    for (const [key, view] of [
        ["2", "head"],
        ["3", "compare"],
        ["4", "align"],
        ["5", "flow"],
    ]) {
        await page.keyboard.press(key);
        check((await hashOf(page)).includes(`view=${view}`), view);
    }
    await page.keyboard.press("2");
    for (const key of ["]", "}", "k", "s", "g", "c"]) await page.keyboard.press(key);
    const hash = await hashOf(page);
    for (const part of ["head=2", "layer=2", "kind=decoder", "sentence=1", "gold=0", "stretch=1"])
        check(hash.includes(part), `${part} in ${hash}`);
    await page.reload();
    equal(await hashOf(page), hash, "the address brings it back");
    equal(await page.locator("#head").inputValue(), "2", "and the page shows it");
    await page.keyboard.press("?");
    check(await page.locator("#keys").isVisible(), "the list of keys");
    await page.keyboard.press("Escape");
    await page.keyboard.press("t");
    equal(await page.locator("html").getAttribute("data-theme"), "dark", "dark by a key");
    await page.emulateMedia({ media: "print" });
    check(await page.waitForSelector('html[data-theme="light"]'), "paper is light");
    await close(page);
    const dark = await open("", { colorScheme: "dark" });
    equal(await dark.locator("html").getAttribute("data-theme"), "dark", "as the system says");
    await close(dark);
});

// Controls that lie on each other, as text.
function overlaps() {
    const seen = [...document.querySelectorAll("button, select, input, .picker > span, h1, h3")]
        .filter((element) => element.checkVisibility() && !element.closest(".pad, .card"))
        .map((element) => ({ element, box: element.getBoundingClientRect() }));
    const found = [];
    for (const a of seen)
        for (const b of seen) {
            if (a === b || a.element.contains(b.element) || b.element.contains(a.element)) continue;
            const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
            const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
            if (wide > 2 && high > 2) found.push(`${a.element.outerHTML.slice(0, 60)} on another`);
        }
    return found;
}

// Figures that are wider than the window, each with whether the frame around it scrolls sideways.
function wideFigures() {
    return [...document.querySelectorAll("canvas")]
        .filter((canvas) => canvas.getBoundingClientRect().width > window.innerWidth)
        .map((canvas) => {
            const frame = canvas.closest(".scroll");
            frame.scrollLeft = 50;
            return { id: canvas.id, scrolls: frame.scrollLeft === 50 };
        });
}

await test("small_screens_scroll_only_downwards", async () => {
    const framed = new Set();
    for (const width of [360, 390, 500])
        for (const view of ["wall", "head", "compare", "align", "flow"]) {
            const page = await open(`view=${view}&kind=cross&sentence=1&row=1&column=1`, {
                viewport: { width, height: 800 },
                path: view === "wall" || view === "head" ? costPath : twoPath,
            });
            const left = await page.evaluate(() => {
                window.scrollTo(1000, 0);
                return window.scrollX;
            });
            const wide = await page.evaluate(() => document.documentElement.scrollWidth);
            check(wide <= width && left === 0, `${view} at ${width}: ${wide}, moved by ${left}`);
            for (const { id, scrolls } of await page.evaluate(wideFigures)) {
                check(scrolls, `${view} at ${width}: ${id} is cut`);
                framed.add(`${view} ${id}`);
            }
            const found = await page.evaluate(overlaps);
            equal(found.length, 0, `${view} at ${width}: ${found[0]}`);
            await close(page);
        }
    for (const figure of ["align main", "flow flow"])
        check(!framed.has(figure), `${figure} is wider than the window`);
});

await test("everything_shows_that_it_has_the_focus", async () => {
    for (const view of ["wall", "head", "flow"]) {
        const page = await open(`view=${view}`);
        const seen = new Set();
        for (let n = 0; n < 60; n++) {
            await page.keyboard.press("Tab");
            const [name, style] = await page.evaluate(() => {
                const { activeElement: it } = document;
                return [it.id || it.className || it.tagName, getComputedStyle(it).outlineStyle];
            });
            if (name === "BODY") break;
            seen.add(name);
            check(style !== "none", `${view}: ${name} has no ring`);
        }
        check(seen.has("view-head") && seen.has("theme"), `${view}: ${[...seen].join(" ")}`);
        await close(page);
    }
});

// The same sentence, as if it had 64 words and the model 12 layers of 12 heads: all weights exact.
function largePage(path) {
    const layers = 12,
        heads = 12,
        size = 64,
        width = 4;
    const packed = (count, value) =>
        Buffer.from(Float32Array.from({ length: count }, (_, n) => value(n)).buffer).toString(
            "base64",
        );
    const large = dataOf(pagePath),
        [sentence] = large.sentences;
    const words = Array.from({ length: size }, (_, n) => `word${n}`);
    Object.assign(sentence, { source: words, target: words, expected: words, said: words });
    sentence.log_likelihood = words.map(() => -0.1);
    delete sentence.alignment;
    delete sentence.roles;
    for (const kind of sentence.kinds) {
        const maps = layers * heads;
        Object.assign(kind, { layers, heads, rows: size, columns: size, width, changed: [] });
        kind.weights = Array.from({ length: maps }, () =>
            packed(size * size, (n) => (n % size === 3 ? 1 : 0)),
        );
        for (const name of Object.keys(kind.measures))
            kind.measures[name] = new Array(maps).fill(kind.measures[name][0]);
        kind.roles = new Array(maps).fill(kind.roles[0]);
        for (const name of ["q", "k", "v"]) kind[name] = packed(maps * size * width, (n) => n % 7);
        kind.value_norms = packed(maps * size, () => 1);
        for (const name of ["losses", "uniform_losses"]) kind[name] = packed(maps, (n) => n);
    }
    const html = readFileSync(pagePath, "utf8"),
        [from, to] = dataPlace(html);
    writeFileSync(path, html.slice(0, from) + JSON.stringify(large) + html.slice(to));
}

await test("a_page_of_many_heads_opens", async () => {
    const path = join(scratch, "large.html");
    largePage(path);
    const page = await open("", { path });
    equal(await page.locator(".card").count(), 144, "all heads");
    await page.keyboard.press("2");
    await page.focus("#main");
    for (let n = 0; n < 4; n++) await page.keyboard.press("ArrowRight");
    equal(await text(page, "#main-value"), "word0 \u2192 word3: 1", "a value");
    await close(page);
});

await test("weights_of_another_model", async () => {
    const page = await open("", { path: crossPath });
    equal(await page.locator("#kind-decoder").count(), 0, "kinds that are there");
    check(!(await text(page, "footer")).includes("32-bit"), "they are as in the file");
    equal(await page.locator("[data-model]:visible").count(), 0, "nothing of a model");
    await page.keyboard.press("4");
    await page.selectOption("#align-word", "60");
    check(
        (await text(page, "figcaption")).includes("Words 49 to 72 above"),
        "a part of a long text",
    );
    const csv = (await save(page, "#main-csv")).bytes.toString().trim().split("\n");
    equal(csv.length, 25, "rows of the part");
    equal(csv[1].split(",")[1], "1", "the weight on the diagonal");
    await page.keyboard.press("2");
    await page.focus("#main");
    for (const key of ["ArrowDown", "Enter"]) await page.keyboard.press(key);
    check((await text(page, ".cell-room")).includes("weights only"), "no cell is taken apart");
    equal(await page.locator("#mode-norm").count(), 0, "no value norms");
    await page.keyboard.press("5");
    check(await page.locator("#flow").isVisible(), "a flow without an encoder");
    await close(page);
});

await test("a_hostile_text_is_a_text", async () => {
    const page = await open("", { path: hostilePath });
    equal(await page.evaluate(() => window.broken), undefined, "no script of the text runs");
    check((await page.locator(".card").count()) > 0, "the page works");
    await close(page);
});

await test("no_console_error_and_no_request_leaves_the_file", () => {
    equal(problems.length, 0, problems.slice(0, 5).join("; "));
});

await end();
finish("test_page");
