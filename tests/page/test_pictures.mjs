// SPDX-License-Identifier: MIT
// Pages of models that read pictures, in a real browser. Arguments: the folder of playwright-core and
// axe-core, the browser, a folder with pages and with what the program says of the same pictures (see
// test_pictures.sh), and the address of a server; empty: none.
import { axeProblems, dataOf, floats, overflow, startBrowser, text } from "./browser.mjs";
import { check, equal, finish, near, test } from "./harness.mjs";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [tools, browserPath, folder, address] = process.argv.slice(2);
const browser = await startBrowser(join(tools, "node_modules/playwright-core"), browserPath);
const at = (name) => join(folder, name);
const read = (name) => JSON.parse(readFileSync(at(name), "utf8"));
// Reading pixels back, as these tests do, is slow: browsers say so.
const nothingWrong = () =>
    equal(
        browser.problems
            .splice(0)
            .filter((problem) => !problem.includes("willReadFrequently"))
            .join("; "),
        "",
        "problems",
    );

const MEAN = at("mean.html"),
    CLASS = at("class.html");

// The weights of head `map` of the first kind, as rows.
function rowsOf(path, sentence, map) {
    const [kind] = dataOf(path).sentences[sentence].kinds;
    const weights = floats(kind.weights[map]);
    return Array.from({ length: kind.rows }, (_, i) =>
        weights.slice(i * kind.columns, (i + 1) * kind.columns),
    );
}

// The colours of a canvas at shares of its sides.
function colourAt(page, selector, x, y) {
    return page.$eval(
        selector,
        (canvas, [right, down]) =>
            Array.from(
                canvas
                    .getContext("2d")
                    .getImageData(Math.floor(right * canvas.width), Math.floor(down * canvas.height), 1, 1)
                    .data.slice(0, 3),
            ),
        [x, y],
    );
}

// Every percentage of a text, as numbers.
const numbers = (words) => Array.from(words.matchAll(/([\d.]+) %/g), ([, number]) => Number(number));

// Whether a canvas has the strongest colour over patch n of 3 x 3, as see_heads.c blends it.
async function strongest(page, selector, n) {
    const [{ picture }] = dataOf(MEAN).sentences;
    const [y, x] = [Math.floor(n / 3) * 4 + 2, (n % 3) * 4 + 2];
    const dark = Buffer.from(picture.bytes, "base64")[y * 12 + x] >> 1;
    const colour = await colourAt(page, selector, (x + 0.5) / 12, (y + 0.5) / 12);
    [0xfb, 0xf3, 0xa0].forEach((above, c) =>
        near(colour[c], Math.floor(0.2 * dark + 0.8 * above + 0.5), 1, `${selector}: ${colour}`),
    );
}

async function point(page, i, j, across) {
    const box = await page.locator("#main").boundingBox();
    await page.mouse.move(
        box.x + ((j + 0.5) * box.width) / across,
        box.y + ((i + 0.5) * box.height) / across,
    );
}

await test("the_picture_and_its_classes_are_shown", async () => {
    const page = await browser.open(MEAN);
    const [{ picture, probabilities }] = dataOf(MEAN).sentences,
        [{ classes }] = read("whole.json");
    const shown = await page.locator("#classes li").allTextContents();
    equal(shown.length, 2, "classes");
    check(shown[0].startsWith(classes[0].class), shown[0]);
    near(numbers(shown[0])[0], 100 * classes[0].probability, 0.006, "as mha see says");
    near(probabilities[classes[0].number], classes[0].probability, 1e-5, "in the data");
    const bytes = Buffer.from(picture.bytes, "base64");
    equal(bytes.length, picture.side ** 2, "pixels");
    for (const [x, y] of [[1, 2], [6, 6], [10, 3]]) {
        const colour = await colourAt(page, "#seen", (x + 0.5) / picture.side, (y + 0.5) / picture.side);
        equal(colour.join(" "), Array(3).fill(bytes[y * picture.side + x]).join(" "), `pixel ${x} ${y}`);
    }
    check((await text(page, "#intro")).includes("reads as a row of patches"), "what this is");
    check(await page.locator("[data-model=pictures]").isVisible(), "what the loss is");
    check(!/word|sentence/i.test(await text(page, "#view")), "no words on a page of pictures");
    await page.close();
    nothingWrong();
});

await test("the_wall_has_each_head_over_the_picture", async () => {
    const page = await browser.open(MEAN, "view=wall");
    await page.waitForTimeout(200);
    for (const map of [0, 3]) {
        const rows = rowsOf(MEAN, 0, map);
        const mean = rows[0].map((_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
        const best = mean.indexOf(Math.max(...mean));
        const card = `#card-${Math.floor(map / 2) + 1}-${(map % 2) + 1} canvas`;
        await page.locator(card).scrollIntoViewIfNeeded();
        await page.waitForTimeout(300);
        await strongest(page, card, best);
    }
    await page.close();
    nothingWrong();
});

await test("a_patch_pointed_at_shows_its_row", async () => {
    const page = await browser.open(MEAN, "view=head&layer=2&head=1");
    const rows = rowsOf(MEAN, 0, 2);
    await point(page, 1, 2, 3);
    const row = rows[5],
        best = row.indexOf(Math.max(...row));
    const words = await text(page, "#main-value");
    check(
        words.startsWith(`patch 2.3 looks most at ${Math.floor(best / 3) + 1}.${(best % 3) + 1} `),
        words,
    );
    near(numbers(words)[0], 100 * row[best], 0.06, "its share");
    await strongest(page, "#main", best);
    check((await text(page, "aside")).includes("Row \u201c2.3\u201d"), "its bars");
    await page.close();
    nothingWrong();
});

await test("keys_move_choose_and_free_a_row", async () => {
    const page = await browser.open(MEAN, "view=head&layer=1&head=2");
    const rows = rowsOf(MEAN, 0, 1);
    await page.focus("#main");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    check((await text(page, "#main-value")).startsWith("patch 2.2 looks most at"), "moved");
    await page.keyboard.press("Enter");
    check(page.url().includes("row=4"), page.url());
    await page.keyboard.press("ArrowDown");
    const said = await text(page, "#main-value");
    equal(said, `row 2.2 \u2192 patch 3.2: ${rows[4][7].toFixed(4)}`, "a weight of the row");
    await page.keyboard.press("Enter");
    check(page.url().includes("column=7"), "the column");
    near(Number(await text(page, "#cell-weight")), rows[4][7], 2e-6, "how it is computed");
    await page.click("#row-kept-free");
    check(!page.url().includes("row="), "free again");
    await page.keyboard.press("a");
    check(page.url().includes("form=matrix"), "the matrix of the same head");
    await page.close();
    nothingWrong();
});

await test("patches_that_overlap_and_a_class_token", async () => {
    const page = await browser.open(CLASS, "view=head&layer=1&head=1");
    const [{ picture }] = dataOf(CLASS).sentences;
    equal([picture.stride, picture.patch, picture.across, picture.marks, picture.reads].join(" "), "2 4 5 1 class", "shape");
    const rows = rowsOf(CLASS, 0, 0);
    check((await text(page, "figcaption")).includes("the row of the class token"), "whose row it is");
    const own = rows[0].slice(1),
        best = own.indexOf(Math.max(...own));
    check(
        (await text(page, "figcaption")).includes(`most at ${Math.floor(best / 5) + 1}.${(best % 5) + 1} `),
        "where it looks",
    );
    // The middle of the picture is that of patch 3.3, whose cell of 2 pixels begins at pixel 5.
    const box = await page.locator("#main").boundingBox();
    await page.mouse.move(box.x + (5.2 / 12) * box.width, box.y + (6.8 / 12) * box.height);
    const words = await text(page, "#main-value");
    check(words.startsWith("patch 3.3 looks most at"), words);
    await page.close();
    nothingWrong();
});

await test("roles_are_those_of_mha_heads_and_mha_show", async () => {
    const [{ kinds }] = dataOf(MEAN).sentences,
        { study } = dataOf(MEAN),
        { maps } = read("shown.json");
    for (const [n, head] of read("heads.json").heads.entries()) {
        const role = kinds[0].roles[n];
        equal(role.found ? role.name : "mixed", head.role, `role of ${n}`);
        near(role.score, head.score, 1e-5, `score of ${n}`);
        equal(maps[n].role, head.role, `role of ${n} in mha show`);
    }
    for (const [n, head] of read("studied.json").heads.entries()) {
        const role = study.heads[n];
        equal(role.found ? role.name : "mixed", head.role, `studied role of ${n}`);
        near(role.low, head.interval[0], 1e-5, `its interval`);
    }
    const page = await browser.open(MEAN, "view=head");
    const aside = await text(page, "aside");
    check(aside.includes("Over 2 pictures of names.txt"), aside.slice(0, 80));
    check(aside.includes("On this picture"), "on this picture");
    await page.close();
    nothingWrong();
});

await test("the_lecture_and_every_view_speak_of_patches", async () => {
    const page = await browser.open(MEAN);
    for (const button of ["lecture-start", "stop-next", "stop-next"]) await page.click(`#${button}`);
    equal(await text(page, "#stop-title"), "3. Patches become rows of numbers", "the lecture");
    check((await text(page, "#step-title")).length > 0, "its step");
    for (const hash of ["view=compute&step=whole", "view=flow", "view=model", "view=compare", "view=conv", "view=head&form=arcs"]) {
        await page.goto(page.url().replace(/#.*/, `#${hash}`));
        await page.waitForTimeout(100);
        check((await text(page, "#view")).length > 0, hash);
    }
    await page.close();
    nothingWrong();
});

// The label of a card says more than the words on it, on every page: not what is tested here.
await test("narrow_windows_and_axe", async () => {
    for (const hash of ["", "view=head&row=4", "view=compute", "view=model"]) {
        const page = await browser.open(MEAN, hash, { viewport: { width: 390, height: 800 } });
        await page.waitForTimeout(100);
        check((await overflow(page)) <= 0, `${hash}: scrolls sideways`);
        const problems = await axeProblems(page, tools, ".card");
        equal(problems.join("; "), "", hash);
        await page.close();
    }
    nothingWrong();
});

// ------------------------------------------------------------------ scenes -----

const CAPTIONS = at("captions.html"),
    DETECTOR = at("detector.html");

// What all cross heads of a page give to the patches in a row, on average.
function meanRow(path, row) {
    const [kind] = dataOf(path).sentences[0].kinds;
    const rows = kind.weights.map((one) =>
        floats(one).slice(row * kind.columns, (row + 1) * kind.columns),
    );
    return rows[0].map((_, j) => rows.reduce((sum, own) => sum + own[j], 0) / rows.length);
}

await test("words_of_a_caption_show_where_heads_look", async () => {
    const page = await browser.open(CAPTIONS);
    const [{ picture, kinds, translation }] = dataOf(CAPTIONS).sentences;
    equal(kinds.map(({ name }) => name).join(" "), "cross", "kinds");
    equal(translation, read("said.json")[0].captions[0].caption, "as mha see says");
    equal(await page.locator("[id^=look-head-]").count(), 4, "heads");
    const buttons = await page.locator("#view .look-words button").allTextContents();
    equal(buttons.length, kinds[0].rows, "a word for each row");
    check(translation.startsWith(buttons[0]), `${buttons[0]} of ${translation}`);
    if (!check(kinds[0].rows > 2, "a caption of two words or more")) return;
    await page.hover("#look-1");
    const own = meanRow(CAPTIONS, 1),
        best = own.indexOf(Math.max(...own));
    const name = `${Math.floor(best / picture.across) + 1}.${(best % picture.across) + 1}`;
    const caption = await text(page, "figcaption");
    check(caption.includes(`most at ${name} ${(100 * own[best]).toFixed(1)} %`), caption);
    await page.focus("#look-1");
    await page.keyboard.press("ArrowRight");
    equal(await page.evaluate(() => document.activeElement.id), "look-2", "the next word");
    await page.keyboard.press("Enter");
    check(page.url().includes("row=2"), "it stays");
    await page.focus("#main");
    await page.keyboard.press("ArrowRight");
    const said = await text(page, "#main-value");
    const shares = buttons.map((_, row) => meanRow(CAPTIONS, row)[0]),
        most = shares.indexOf(Math.max(...shares));
    check(said.includes(`patch 1.1: ${meanRow(CAPTIONS, 2)[0].toFixed(4)}`), said);
    check(
        said.includes(`looked at most by ${buttons[most]} ${(100 * shares[most]).toFixed(1)} %`),
        said,
    );
    const strength = await page.$eval(`#look-${most}`, (one) => one.style.getPropertyValue("--look"));
    near(Number(strength), 100, 1e-6, "the strongest word");
    await page.click("#look-head-2-1");
    check(page.url().includes("view=head") && page.url().includes("layer=2"), "its own view");
    await page.click("#row-1");
    const row = rowsOf(CAPTIONS, 0, 2)[1],
        top = Math.max(...row);
    const over = await page.locator("figcaption").first().textContent();
    check(over.includes(`${(100 * top).toFixed(1)} %`), over);
    await page.close();
    nothingWrong();
});

await test("queries_of_a_detector_have_boxes", async () => {
    const page = await browser.open(DETECTOR);
    const [{ boxes, target }] = dataOf(DETECTOR).sentences,
        [{ boxes: found }] = read("found.json");
    equal(boxes.length, 4, "queries");
    for (const one of found) {
        const n = boxes.findIndex(({ score }) => Math.abs(score - one.score) < 1e-5);
        equal(target[n], one.class, "what it is");
    }
    const buttons = await page.locator("#view .look-words button").allTextContents();
    equal(buttons[0], `${target[0]} ${(100 * boxes[0].score).toFixed(0)} %`, "the first query");
    await page.click("#look-0");
    await page.mouse.move(5, 5);
    // The left side of its box, where that is on the picture, has the colour of the chosen row.
    const x = Math.min(0.97, Math.max(0.03, boxes[0].left)),
        y = Math.min(0.95, Math.max(0.05, boxes[0].top + boxes[0].height / 2));
    if (boxes[0].left > 0.03)
        equal((await colourAt(page, "#main", x, y)).join(" "), "255 180 84", "its box");
    await page.close();
    nothingWrong();
});

await test("pages_of_scenes_are_for_everyone", async () => {
    for (const [path, hash] of [[CAPTIONS, ""], [CAPTIONS, "view=head&row=1"], [DETECTOR, "row=1"]]) {
        const page = await browser.open(path, hash, { viewport: { width: 390, height: 800 } });
        await page.waitForTimeout(100);
        check((await overflow(page)) <= 0, `${path} ${hash}: scrolls sideways`);
        equal((await axeProblems(page, tools, ".card")).join("; "), "", `${path} ${hash}`);
        await page.close();
    }
    const page = await browser.open(CAPTIONS);
    for (const view of ["wall", "compare", "align", "flow", "compute", "model", "study"]) {
        await page.goto(page.url().replace(/#.*/, `#view=${view}`));
        await page.waitForTimeout(100);
        check((await text(page, "#view")).length > 0, view);
    }
    await page.close();
    nothingWrong();
});

// ------------------------------------------------------------------- live -----

// Disables encoder 1.2 of a live page and compares with the model whose matrix has zeros there.
async function closesAHead(page) {
    const [whole] = read("whole.json"),
        [closed] = read("closed.json");
    const named = (list, name) => 100 * list.find((one) => one.class === name).probability;
    await page.click("#zero-1-2");
    await page.waitForSelector("#live-classes");
    const lines = await page.locator("#live-classes li").allTextContents();
    equal(lines.length, 2, "classes");
    for (const line of lines) {
        const name = line.startsWith("left") ? "left" : "right";
        const [before, after] = numbers(line);
        near(before, named(whole.classes, name), 0.006, `${name} before`);
        near(after, named(closed.classes, name), 0.006, `${name} after`);
        check(Math.abs(before - after) > 0.02, `${name} changes: ${line}`);
    }
    near(
        numbers((await page.locator("#classes li").allTextContents())[0])[0],
        100 * closed.classes[0].probability,
        0.006,
        "the classes above",
    );
    const message = await text(page, "#live-message");
    check(/It stays|instead of/.test(message), message);
    await page.click("#reopen-all");
    await page.waitForFunction(() => !document.querySelector("#live-classes"));
}

async function takesOtherPictures(page) {
    const [, large] = read("whole.json");
    await page.click("#chip-2");
    await page.waitForFunction(() => location.hash.includes("large.png"));
    await page.waitForTimeout(300);
    const shown = async () => numbers((await page.locator("#classes li").allTextContents())[0])[0];
    near(await shown(), 100 * large.classes[0].probability, 0.006, "an example");
    await page.click("#chip-1");
    await page.waitForFunction(() => location.hash.includes("shoe.pgm") || !location.hash.includes("large.png"));
    // The browser scales the file as the program does: 60 x 45 colours become 12 x 12 grey pixels.
    await page.setInputFiles("#live-picture", at("large.png"));
    await page.waitForFunction(() => location.hash.includes("large.png"));
    await page.waitForTimeout(500);
    near(await shown(), 100 * large.classes[0].probability, 0.006, "a file");
    await page.setInputFiles("#live-picture", at("names.txt"));
    await page.waitForFunction(() =>
        document.querySelector("#live-message").textContent.includes("no picture"),
    );
}

if (address)
    await test("heads_are_closed_on_a_served_page", async () => {
        const page = await browser.openAddress(address);
        await closesAHead(page);
        await takesOtherPictures(page);
        check((await overflow(page)) <= 0, "no scrolling sideways");
        equal((await axeProblems(page, tools, ".card")).join("; "), "", "axe");
        await page.close();
        nothingWrong();
    });

if (address)
    await test("views_of_a_served_page_send_the_picture", async () => {
        const page = await browser.openAddress(address, "view=compute&step=softmax&layer=2");
        await page.waitForSelector("#step-title");
        await page.goto(`${address}#view=study`);
        await page.waitForTimeout(500);
        await page.click("#hide-3");
        await page.waitForTimeout(500);
        check((await text(page, "#view")).includes("1 \u2212 cosine"), "an experiment");
        await page.close();
        nothingWrong();
    });

if (existsSync(at("live.html")))
    await test("the_same_in_a_page_with_its_model_inside", async () => {
        const page = await browser.open(at("live.html"));
        await closesAHead(page);
        await takesOtherPictures(page);
        await page.close();
        nothingWrong();
    });

await browser.end();
finish("test_pictures");
