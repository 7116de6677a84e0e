// SPDX-License-Identifier: MIT
// Pages of models that are no translators, in a real browser. Arguments: playwright-core, the
// browser, pages of an encoder, a decoder and an encoder-decoder, one of a translation that the last
// wrote itself, and the address of a server with the encoder; empty: none. Beside the pages are
// llama.html and qwen3.html, of decoders with rotary positions.
import { dataOf, floats, startBrowser, text } from "./browser.mjs";
import { check, equal, finish, near, test } from "./harness.mjs";
import { dirname, join } from "node:path";

const [playwrightPath, browserPath, encoder, decoder, both, written, address] = process.argv.slice(2);
const browser = await startBrowser(playwrightPath, browserPath);
const words = (page) => page.locator("#sentence-room .word").allTextContents();
const nothingWrong = () => equal(browser.problems.join("; "), "", "problems");

await test("an_encoder_has_one_kind_and_no_translation", async () => {
    const page = await browser.open(encoder);
    equal((await words(page)).join(" "), dataOf(encoder).sentences[0].source.join(" "), "tokens");
    equal(await page.locator("[id^=card-]").count(), 6, "heads");
    check(await page.locator("[data-model=encodes]").isVisible(), "what the loss is");
    check(!(await page.locator("[data-model=translates]").isVisible()), "not that of another");
    check((await text(page, "#about")).startsWith("bert: 2 layers of 3 heads"), "about");
    await page.close();
    nothingWrong();
});

await test("a_cell_of_an_encoder_is_computed_again", async () => {
    const page = await browser.open(encoder, "view=head&layer=2&head=3&row=2&column=5");
    const kind = dataOf(encoder).sentences[0].kinds[0];
    const weight = floats(kind.weights[5])[2 * kind.columns + 5];
    near(Number(await text(page, "#cell-weight")), weight, 2e-6, "the weight");
    check((await text(page, ".cell-room")).includes("is rounding"), "as the model computed it");
    check((await text(page, ".facts")).includes("vector turns: 1 \u2212 cosine 0."), "its loss");
    check((await text(page, ".bar >> nth=1")).includes("Marks hidden"), "marks can be hidden");
    await page.close();
    nothingWrong();
});

await test("tokens_are_joined_to_words", async () => {
    const page = await browser.open(encoder, "view=head&layer=1&head=2");
    await page.click("#words-1");
    equal((await words(page)).join(" "), "[CLS] the unbelievably black cat sleeps ? [SEP]", "words");
    check((await text(page, "#view")).includes("8 rows attend"), "rows");
    await page.click("#words-0");
    check((await text(page, "#view")).includes("11 rows attend"), "rows of tokens");
    await page.goto(page.url().replace("#", "#words=1&row=2&column=2&"));
    await page.close();
    nothingWrong();
});

await test("numbers_are_of_whole_words_in_both_modes", async () => {
    for (const words of [0, 1]) {
        const page = await browser.open(encoder, `view=head&words=${words}`);
        const facts = await text(page, ".facts");
        check(facts.includes(`nats, at most ${Math.log(8).toFixed(3)}`), `${words}: ${facts}`);
        check(/over 8 rows|nearest/.test(await text(page, "aside")), "the role is over words");
        equal((await text(page, "aside")).includes("here 8 \u00d7 8"), words === 0, "says so");
        await page.close();
    }
    nothingWrong();
});

// ------------------------------------------------------------- computation -----

// What the page says of cell (i, j) of a matrix of the view Compute: the number after the last "=" of
// its formula, and the value below it.
async function cellOf(page, id, i, j) {
    await page.focus(`#m-${id}`);
    await page.keyboard.press("ArrowRight");
    for (let n = 0; n < i; n++) await page.keyboard.press("ArrowDown");
    for (let n = 0; n < j; n++) await page.keyboard.press("ArrowRight");
    const lines = await page.locator("#explain .formula").allTextContents();
    const number = (words) => Number(words.replaceAll("\u2212", "-"));
    return {
        sum: number(/= ([\u2212\d.]+)$/.exec(lines.at(-2))?.[1] ?? "NaN"),
        value: number(await text(page, "#explain-value")),
        all: lines.join("\n"),
    };
}

const TURNED = ["llama", "qwen3"].map((name) => [name, join(dirname(decoder), `${name}.html`)]);
const layerOf = { llama: 2, qwen3: 1 };

for (const [name, path] of TURNED)
    await test(`${name}_has_sums_that_are_right`, async () => {
        const [{ kinds, steps }] = dataOf(path).sentences;
        const [{ heads, rows, width, q, k }] = kinds;
        const layer = layerOf[name];
        const stored = (array, i, j) =>
            floats(array)[(((layer - 1) * heads + 1) * rows + i) * width + j];
        const page = await browser.open(path, `view=compute&layer=${layer}&head=2&step=project`);
        for (const id of ["q0", "k0", "v"]) {
            const { sum, value, all } = await cellOf(page, id, 2, 5);
            near(sum, value, 1e-4, `${id}: the sum of products\n${all}`);
            equal(all.includes("computed by the page"), id !== "v", `${id}: whose number it is`);
        }
        await page.click("#step-turn");
        for (const [id, array] of [["q", q], ["k", k]])
            for (const [i, j] of [[2, 1], [3, 6]]) {
                await page.reload();
                const { value, all } = await cellOf(page, id, i, j);
                equal(Math.fround(value), stored(array, i, j), `${id} ${i} ${j}`);
                const [, left, right, sign, other, last] =
                    /= ([\u2212\d.]+) \u00b7 ([\u2212\d.]+) ([+\u2212]) ([\u2212\d.]+) \u00b7 ([\u2212\d.]+)$/m.exec(all);
                const [a, b, c, d] = [left, right, other, last].map((x) =>
                    Number(x.replace("\u2212", "-")),
                );
                near(a * b + (sign === "+" ? 1 : -1) * c * d, value, 1e-3, all);
            }
        equal(steps[0].turn.normed, name === "qwen3", "normed");
        equal(steps[0].turn.angles.length, width / 2, "angles");
        await page.click("#step-norm");
        check((await text(page, ".compute")).includes("mean of its squares"), "the norm it has");
        const { all } = await cellOf(page, "input", 1, 2);
        check(all.includes("root of the mean square"), all);
        await page.close();
        nothingWrong();
    });

// T5 does not divide its scores, which the page does: its queries have a factor.
await test("a_factor_of_queries_is_shown", async () => {
    const page = await browser.open(both, "view=compute&kind=decoder&head=2&step=project");
    const { sum, value, all } = await cellOf(page, "q0", 1, 3);
    near(sum, value, 1e-4, all);
    await page.click("#step-turn");
    const { width } = dataOf(both).sentences[0].kinds[1];
    check((await text(page, ".compute")).includes(Math.sqrt(width).toFixed(4)), "the factor");
    await page.close();
    nothingWrong();
});

await test("only_keys_that_do_something_are_listed", async () => {
    const page = await browser.open(encoder);
    await page.keyboard.press("?");
    const list = await text(page, "#key-list");
    check(list.includes("wall, head, compare, flow"), list);
    check(!/alignment|grammar|next kind|next sentence/.test(list), list);
    await page.close();
    nothingWrong();
});

await test("flow_starts_at_the_last_layer", async () => {
    const page = await browser.open(encoder, "view=flow");
    equal(await page.locator("#flow-layer").inputValue(), "2", "of two");
    await page.selectOption("#flow-layer", "1");
    check(page.url().includes("from=1"), "the address has another one");
    await page.close();
    nothingWrong();
});

await test("bars_and_the_command_are_explained", async () => {
    const page = await browser.open(encoder);
    check(/loss \+.*a full bar is 1 \u2212 cosine 0\.\d{4}/.test(await text(page, "#bar-legend")), "bars");
    check((await text(page, "#command")).endsWith("sleeps ?'"), "an empty state is left out");
    await page.close();
    nothingWrong();
});

await test("a_decoder_shows_how_likely_its_text_is", async () => {
    const page = await browser.open(decoder, "view=head&row=3&column=1");
    const [sentence] = dataOf(decoder).sentences;
    equal((await words(page)).length, sentence.target.length, "tokens");
    const title = await page.locator("#sentence-room .word >> nth=2").getAttribute("title");
    const chance = Math.exp(sentence.log_likelihood[1]).toFixed(4);
    check(title.includes(`probability ${chance}`), title);
    check(await page.locator("[data-model=predicts]").isVisible(), "what the loss is");
    check((await text(page, ".cell-room")).includes("is rounding"), "a cell");
    const wrong = sentence.target.slice(1).some((word, i) => word !== sentence.said[i]);
    equal((await text(page, "#word-legend")).includes("Wavy red"), wrong, "what is wavy");
    await page.close();
    nothingWrong();
});

await test("changed_predictions_say_where", async () => {
    const [sentence] = dataOf(decoder).sentences;
    const [kind] = sentence.kinds,
        [change] = kind.changed;
    const [layer, head] = [Math.floor(change.map / kind.heads) + 1, (change.map % kind.heads) + 1];
    const page = await browser.open(decoder, `view=head&layer=${layer}&head=${head}`);
    const [first] = await page.locator(".changes li").allTextContents();
    check(first.startsWith(`position ${change.row + 1}, after`), first);
    check(first.endsWith(`the model\u2019s own \u201c${sentence.said[change.row]}\u201d`), first);
    await page.close();
    nothingWrong();
});

await test("an_encoder_decoder_has_all_views", async () => {
    const page = await browser.open(both, "view=align");
    check((await text(page, "#view")).length > 0, "ribbons");
    await page.goto(page.url().replace("view=align", "view=head&kind=encoder&row=0&column=1"));
    await page.waitForSelector(".cell-room h3");
    check((await text(page, ".cell-room")).includes("position bias"), "scores with another part");
    await page.close();
    nothingWrong();
});

await test("a_translation_has_its_confidence", async () => {
    const page = await browser.open(written),
        [{ confidence, unsure }] = dataOf(written).sentences;
    const line = await text(page, "#confidence");
    check(line.includes(`Confidence ${confidence.toFixed(2)}`), line);
    equal(line.includes("The model is unsure"), unsure, "unsure");
    await page.goto(page.url().replace("written", "t5"));
    equal(await page.locator("#confidence").count(), 0, "of a given text");
    await page.close();
    nothingWrong();
});

if (address)
    await test("heads_of_an_encoder_are_disabled_live", async () => {
        const page = await browser.open(encoder);
        browser.problems.length = 0;
        await page.goto(address);
        await page.waitForSelector("#view > *");
        equal(await text(page, "#live-go"), "Read", "the button");
        await page.fill("#live-text", "the unbelievably black dog");
        await page.waitForFunction(() => document.title.includes("black dog"));
        await page.click("#zero-1-2");
        await page.waitForFunction(() => document.querySelector("#reopen-all"));
        const message = await text(page, "#live-message");
        check(/1 \u2212 cosine is 0\.\d+ .*Moved most: encoder 2\.\d, where/.test(message), message);
        equal(await text(page, "#zero-1-2"), "disabled", "the pressed button");
        check((await text(page, "#command")).startsWith("mha serve --model 'bert' "), "the command");
        check((await text(page, "#bar-legend")).includes("moved"), "what moved is");
        await page.click("#words-1");
        check(/unbelievably/.test((await words(page)).join(" ")), "whole words, live");
        await page.close();
        equal(browser.problems.filter((one) => !one.startsWith("request to")).join("; "), "", "bad");
    });

await browser.end();
finish("test_any");
