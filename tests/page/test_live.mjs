// SPDX-License-Identifier: MIT
// A live page in a real browser. Arguments: playwright-core, the browser, the address of a server
// with a model of 2 layers with 2 heads and, to test a page of "mha view --live" of that model instead
// of the server's, its file.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { check, equal, finish, near, test } from "./harness.mjs";

const [playwrightPath, browserPath, address, file] = process.argv.slice(2);
const place = file ? String(pathToFileURL(file)) : address;
const { chromium } = await import(pathToFileURL(join(playwrightPath, "index.mjs")));
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const problems = [];

async function open(hash = "") {
    const page = await browser.newPage({
        viewport: { width: 1300, height: 900 },
        offline: Boolean(file),
    });
    page.setDefaultTimeout(120000); // the machine may be busy; a test that waits in vain fails
    page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith(place) && !/^(blob|data):/.test(url))
            problems.push(`request: ${url}`);
    });
    await page.goto(`${place}#${hash}`);
    await page.waitForSelector("#view > *");
    return page;
}

const text = (page, selector) => page.locator(selector).textContent();
const message = (page, pattern) =>
    page.waitForFunction(
        (source) => new RegExp(source).test(document.getElementById("live-message").textContent),
        pattern.source,
    );
const sourceWords = async (page) =>
    (await page.locator('#sentence-room [lang="en"] .word').allTextContents()).join(" ");

async function ask(body) {
    const answer = await fetch(`${address}api/view`, {
        method: "POST",
        body: JSON.stringify(body),
    });
    return answer.json();
}

function floats(data) {
    const bytes = Buffer.from(data, "base64");
    return Array.from({ length: bytes.length / 4 }, (_, n) => bytes.readFloatLE(4 * n));
}

// ---------------------------------------------------------------- the tests -----

await test("a_sentence_outside_the_grammar_is_marked", async () => {
    const page = await open();
    equal(await page.locator("#outside").count(), 0, "the first sentence is in the grammar");
    await page.fill("#live-text", "cat the sleeps");
    await page.waitForSelector("#outside");
    check((await text(page, "#outside")).includes('unexpected word "cat"'), "the reason");
    await page.fill("#live-text", "they give it to <b>him");
    await page.waitForFunction(() =>
        document.getElementById("outside")?.textContent.includes("unknown word"),
    );
    equal(await page.locator("#outside b").count(), 0, "a word is text, not markup");
    await page.fill("#live-text", "they give it to him");
    await page.waitForFunction(() => document.getElementById("outside") === null);
    await page.close();
});

await test("what_is_typed_is_translated", async () => {
    const page = await open();
    check(await page.locator("#live").isVisible(), "the field is there");
    await page.fill("#live-text", "our aunt will be lazy");
    await page.waitForFunction(() => document.title.includes("our aunt will be lazy"));
    equal(await sourceWords(page), "our aunt will be lazy \u2039end\u203a", "the words");
    const told = (await ask({ text: "our aunt will be lazy" })).sentences[0].translation;
    check((await text(page, "#live-message")).includes(told), "the translation");
    equal(await page.evaluate(() => document.activeElement.id), "live-text", "the field has focus");
    check((await page.evaluate(() => location.hash)).includes("text=our"), "it is in the address");
    await page.close();
});

await test("what_cannot_be_read_is_said", async () => {
    const page = await open();
    const errors = problems.length;
    const before = await sourceWords(page);
    await page.fill("#live-text", "  ");
    await message(page, /there are no words/);
    equal(await sourceWords(page), before, "what was shown still is");
    await page.fill("#live-text", "the cat sleeps");
    await page.click("#live-go");
    await message(page, /All heads are enabled/);
    equal(await sourceWords(page), "the cat sleeps \u2039end\u203a", "it goes on");
    // The browser itself logs an answer with status 400, which a Worker has no part in.
    equal(problems.splice(errors).length, file ? 0 : 1, "what the browser logs");
    await page.close();
});

await test("a_head_is_closed_with_a_click", async () => {
    const page = await open("kind=cross&text=the+cat+sleeps");
    await message(page, /All heads are enabled/);
    await page.waitForFunction(() => document.title.includes("the cat sleeps"));
    await page.click("#zero-1-1");
    await message(page, /Moved most/);
    equal(await page.getAttribute("#zero-1-1", "aria-pressed"), "true", "it is pressed");
    check((await page.evaluate(() => location.hash)).includes("cross.1.1.zero"), "in the address");
    const closed = await ask({
        text: "the cat sleeps",
        changes: [{ kind: "cross", layer: 1, head: 1, change: "zero" }],
    });
    check(
        (await text(page, "#live-message")).includes(closed.sentences[0].translation),
        "what is said",
    );
    const label = await page.getAttribute("#card-2-1", "aria-label");
    const told = Number(/moved ([0-9.]+)/.exec(label)?.[1]);
    const plain = await ask({ text: "the cat sleeps" });
    near(told, moved(plain, closed, 2), 6e-4, "by how much another head moved");
    await page.click("#reopen-cross-1-1");
    await message(page, /All heads are enabled/);
    equal(await page.getAttribute("#zero-1-1", "aria-pressed"), "false", "it is enabled again");
    await page.close();
});

// Nothing but later words reads the last cross-attention.
await test("closing_a_last_head_moves_no_other", async () => {
    const page = await open("kind=cross&text=the+cat+sleeps");
    await message(page, /All heads are enabled/);
    await page.waitForFunction(() => document.title.includes("the cat sleeps"));
    await page.click("#zero-2-1");
    await message(page, /No other head moves\.$/);
    const change = { kind: "cross", layer: 2, head: 1, change: "zero" };
    const closed = await ask({ text: "the cat sleeps", changes: [change] });
    const plain = await ask({ text: "the cat sleeps" });
    for (const map of [0, 1, 3]) equal(moved(plain, closed, map), 0, `map ${map}`);
    check(!(await text(page, "#live-message")).includes("Moved most"), "none is named");
    await page.close();
});

// Of the cross head (layer 2, head 1): map 2, over the rows that have read the same words.
function moved(plain, closed, map) {
    const [a, b] = [plain, closed].map((data) => data.sentences[0]);
    const [from, to] = [a, b].map((sentence) => floats(sentence.kinds[2].weights[map]));
    const { columns } = a.kinds[2];
    let rows = 0,
        sum = 0;
    while (rows < a.target.length && a.target[rows] === b.target[rows]) rows++;
    for (let n = 0; n < rows * columns; n++) sum += Math.abs(from[n] - to[n]);
    return sum / 2 / rows;
}

await test("heads_by_keyboard", async () => {
    const page = await open("text=the+cat+sleeps");
    await page.waitForFunction(() => document.title.includes("the cat sleeps"));
    await page.focus("#card-2-2");
    await page.keyboard.press("x");
    await page.waitForSelector("#reopen-encoder-2-2");
    equal(await page.evaluate(() => document.activeElement.id), "card-2-2", "the focus stays");
    await page.keyboard.press("x");
    await page.waitForSelector("#reopen-encoder-2-2", { state: "detached" });
    await page.keyboard.press("2");
    await page.click("#change-uniform");
    await page.waitForSelector("#reopen-encoder-1-1");
    check((await text(page, "dl.facts")).includes("on average over 4 rows"), "what it moved");
    await page.keyboard.press("w");
    equal(await page.evaluate(() => document.activeElement.id), "live-text", "w writes");
    await page.close();
});

await test("the_address_has_it_all", async () => {
    const page = await open("text=the+dog+sleeps&closed=cross.1.1.zero%2Cdecoder.2.1.uniform");
    await page.waitForSelector("#reopen-decoder-2-1");
    equal(await sourceWords(page), "the dog sleeps \u2039end\u203a", "the sentence");
    equal(await page.locator("#live-changes button").count(), 3, "two heads, and all");
    await page.click("#reopen-all");
    await page.waitForSelector("#reopen-all", { state: "detached" });
    await page.close();
});

// The model of the page, in a Worker or in the server, answers experiments.
await test("experiments_are_those_of_the_server", async () => {
    const page = await open(
        "view=study&kind=cross&text=the+cat+sleeps&hide=1&second=the+dog+sleeps&patched=cross.2.1&said=0",
    );
    await page.waitForSelector('#study-result[aria-busy="false"] #shares');
    const { rows } = await ask({
        text: "the cat sleeps",
        probe: {
            hidden: [1],
            patch: { text: "the dog sleeps", heads: [{ kind: "cross", layer: 2, head: 1 }] },
        },
    });
    const table = await page
        .locator("#study-table tbody tr td:nth-of-type(3)")
        .allTextContents();
    equal(table.length, rows.length, "words");
    rows.forEach((row, n) =>
        near(Number(table[n].replace("\u2212", "-")), row.after - row.before, 6e-4, `word ${n}`),
    );
    equal(await page.locator("#study-lens tbody tr").count(), rows.length, "the lens");
    await page.close();
});

await test("two_clicks_close_two_heads", async () => {
    const page = await open("kind=cross");
    await page.evaluate(() => {
        document.getElementById("zero-1-1").click();
        document.getElementById("uniform-2-2").click();
    });
    await page.waitForSelector("#reopen-cross-2-2");
    equal(await page.locator("#reopen-cross-1-1").count(), 1, "the first is not forgotten");
    await page.close();
});

await test("nothing_went_wrong", async () => {
    equal(problems.join("\n"), "", "console and requests");
});

await browser.close();
finish("test_live");
