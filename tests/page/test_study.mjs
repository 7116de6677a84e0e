// SPDX-License-Identifier: MIT
// The view Study in a real browser. Arguments: the folder of playwright-core and axe-core, the browser,
// a page of "mha view" of a model of 2 layers with 2 heads, and the addresses of four servers: of the
// same model, of an encoder, of a decoder, of an encoder-decoder.
import { join } from "node:path";
import { axeProblems, dataOf, floats, focused, hashOf, overflow, startBrowser, text } from "./browser.mjs";
import { check, equal, finish, near, test } from "./harness.mjs";

const [toolsPath, browserPath, pagePath, address, encoder, decoder, both] = process.argv.slice(2);
const { open, openAddress, problems, end } = await startBrowser(
    join(toolsPath, "node_modules/playwright-core"),
    browserPath,
);
const close = (page) => page.context().close();
const SENTENCE = "text=the+black+cat+sleeps";

async function ask(where, body) {
    const answer = await fetch(`${where}api/view`, { method: "POST", body: JSON.stringify(body) });
    return answer.json();
}

// Waits until the experiment that the page shows is the one of the request.
async function settled(page) {
    await page.waitForFunction(
        () =>
            document.querySelector('#study-result[aria-busy="false"], #study-message.warning') !==
            null,
    );
}

async function study(hash = "", options = {}, where = address) {
    const page = await openAddress(where, `view=study&${hash}`, options);
    await settled(page);
    return page;
}

// The numbers of the table: [[word, before, after, change]] as texts.
const shown = (page) =>
    page
        .locator("#study-table tbody tr")
        .evaluateAll((rows) =>
            rows.map((row) => [...row.children].slice(0, 4).map((cell) => cell.textContent)),
        );

function percent(logarithm) {
    const share = 100 * Math.exp(logarithm);
    return `${share >= 0.1 ? share.toFixed(1) : share.toPrecision(1)} %`;
}

async function showsAnswer(page, request, what) {
    const { rows } = await ask(address, request);
    const table = await shown(page);
    equal(table.length, rows.length, `${what}: rows`);
    rows.forEach((row, n) => {
        const [, before, after, change] = table[n];
        equal(before, percent(row.before), `${what}: before, row ${n}`);
        equal(after, percent(row.after), `${what}: after, row ${n}`);
        near(Number(change.replace("\u2212", "-")), row.after - row.before, 6e-4, `${what}: ${n}`);
    });
    return rows;
}

// ------------------------------------------------------------ hidden words -----

await test("words_are_hidden_with_a_click", async () => {
    const page = await study(SENTENCE);
    await page.waitForFunction(() => document.title.includes("the black cat sleeps"));
    const plain = { text: "the black cat sleeps" };
    await settled(page);
    const before = await showsAnswer(page, { ...plain, probe: {} }, "nothing hidden");
    check(
        before.every((row) => row.before === row.after),
        "nothing changes",
    );
    await page.click("#hide-2");
    await settled(page);
    equal(await page.getAttribute("#hide-2", "aria-pressed"), "true", "it is pressed");
    const rows = await showsAnswer(page, { ...plain, probe: { hidden: [2] } }, "one word");
    check(
        rows.some((row) => row.before !== row.after),
        "it changes something",
    );
    check((await hashOf(page)).includes("hide=2"), await hashOf(page));
    await page.click("#hide-0");
    await settled(page);
    await showsAnswer(page, { ...plain, probe: { hidden: [0, 2] } }, "two words");
    await page.goBack();
    await settled(page);
    equal(await page.getAttribute("#hide-0", "aria-pressed"), "false", "Back shows it again");
    await page.reload();
    await page.waitForSelector("#hide-2");
    await settled(page);
    equal(await page.getAttribute("#hide-2", "aria-pressed"), "true", "after a reload");
    await page.click("#hide-2");
    await settled(page);
    equal(await page.getAttribute("#hide-2", "aria-pressed"), "false", "shown again");
    await close(page);
});

await test("words_are_hidden_by_keyboard", async () => {
    const page = await openAddress(address, SENTENCE);
    await page.waitForFunction(() => document.title.includes("the black cat sleeps"));
    await page.keyboard.press("8");
    await settled(page);
    await page.focus("#hide-1");
    await page.keyboard.press("Space");
    await settled(page);
    equal(await page.getAttribute("#hide-1", "aria-pressed"), "true", "it is pressed");
    equal(await focused(page), "hide-1", "the focus stays");
    await close(page);
});

await test("closed_heads_count_too", async () => {
    const page = await study(`${SENTENCE}&closed=cross.2.1.zero&hide=1`);
    await page.waitForFunction(() =>
        document.getElementById("study-closed")?.textContent.includes("cross 2.1"),
    );
    await settled(page);
    const changes = [{ kind: "cross", layer: 2, head: 1, change: "zero" }];
    await showsAnswer(
        page,
        { text: "the black cat sleeps", changes, probe: { hidden: [1] } },
        "a head and a word",
    );
    await close(page);
});

await test("another_sentence_has_other_words", async () => {
    const page = await study(`${SENTENCE}&hide=3`);
    await page.waitForFunction(() => document.title.includes("the black cat sleeps"));
    equal(await page.getAttribute("#hide-3", "aria-pressed"), "true", "hidden");
    await page.fill("#live-text", "our aunt will be lazy");
    await page.waitForFunction(() => document.title.includes("our aunt"));
    await settled(page);
    equal(await page.getAttribute("#hide-3", "aria-pressed"), "false", "not hidden");
    await close(page);
});

await test("hostile_addresses_do_no_harm", async () => {
    const hostile = "hide=999999,-1,abc,1e9,2,,<img>&said=99999999999&word=-7&second=<img>&patched=cross.9.9,__proto__.1.1,cross.1.1.1,x";
    const page = await study(`${SENTENCE}&${hostile}`);
    await page.waitForFunction(() => document.title.includes("the black cat sleeps"));
    await settled(page);
    equal(await page.locator('.chips [aria-pressed="true"]').count(), 1, "one word is hidden");
    equal(await page.locator("#view img").count(), 0, "no markup");
    await close(page);
});

await test("what_cannot_be_done_is_said", async () => {
    const page = await study(`${SENTENCE}&hide=0,1,2,3,4`);
    await page.waitForFunction(() =>
        document.getElementById("study-message")?.textContent.includes("all words are hidden"),
    );
    await page.click("#hide-2");
    await settled(page);
    check((await shown(page)).length > 0, "it goes on");
    // The browser itself logs an answer with status 400.
    problems.splice(0).forEach((line) => check(line.includes("400"), line));
    await close(page);
});

// ------------------------------------------------- every head, every word -----

// What the page has of each head beside an experiment in which the same head is disabled.
await test("each_head_has_its_effect_on_every_word", async () => {
    const sentence = { text: "the black cat sleeps" };
    const [{ kinds, expected }] = (await ask(address, sentence)).sentences;
    for (const { name, heads, layers, losses, word_losses: text } of kinds) {
        const list = floats(text),
            sums = floats(losses),
            count = expected.length;
        equal(list.length, layers * heads * count, `${name}: numbers`);
        for (let map = 0; map < layers * heads; map++) {
            const own = list.slice(map * count, (map + 1) * count);
            near(
                own.reduce((sum, loss) => sum + loss, 0),
                sums[map],
                1e-5,
                `${name} ${map}: the sum`,
            );
            const change = { kind: name, layer: Math.floor(map / heads) + 1, change: "zero" };
            const { rows } = await ask(address, {
                ...sentence,
                changes: [{ ...change, head: (map % heads) + 1 }],
                probe: {},
            });
            rows.forEach((row, n) =>
                near(row.before - row.after, own[n], 1e-5, `${name} ${map}: word ${n}`),
            );
        }
    }
});

await test("effects_are_a_figure", async () => {
    const page = await open(pagePath, "view=study&kind=cross");
    const [{ kinds, expected }] = dataOf(pagePath).sentences;
    const list = floats(kinds.find(({ name }) => name === "cross").word_losses);
    await page.click("#word-effects-table");
    const table = await page
        .locator("#study-effects tbody tr")
        .evaluateAll((rows) =>
            rows.map((row) => [...row.children].map((cell) => cell.textContent)),
        );
    equal(table.length, 4, "heads");
    table.forEach(([name, ...cells], map) => {
        equal(name, `${Math.floor(map / 2) + 1}.${(map % 2) + 1}`, "the head");
        cells.forEach((cell, n) =>
            equal(Math.fround(Number(cell)), 0 - list[map * expected.length + n], `cell ${n}`),
        );
    });
    await page.focus("#word-effects");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    check((await hashOf(page)).includes("head=2"), await hashOf(page));
    check((await hashOf(page)).includes("view=head"), "Enter shows the head");
    await close(page);
});

// ------------------------------------------------------------------ patches -----

await test("heads_are_patched", async () => {
    const page = await study(`${SENTENCE}&kind=cross`);
    await page.waitForFunction(() => document.title.includes("the black cat sleeps"));
    await settled(page);
    const heads = [{ kind: "cross", layer: 2, head: 1 }];
    const patch = { text: "the black dog sleeps", heads };
    await page.click("#patch-2-1");
    check((await text(page, "#patched-list")).includes("write a sentence B"), "B is missing");
    await page.fill("#second", patch.text);
    await page.click("#second-go");
    await page.waitForFunction(() => document.querySelector("#study-table th:nth-child(6)"));
    await settled(page);
    const request = { text: "the black cat sleeps", probe: { patch } };
    const rows = await showsAnswer(page, request, "one head");
    check(
        rows.some((row) => row.before !== row.after),
        "it changes something",
    );
    await page.click("#patch-1-all");
    await page.click("#patch-2-all");
    await settled(page);
    const all = [1, 2].flatMap((layer) => [1, 2].map((head) => ({ kind: "cross", layer, head })));
    const whole = await showsAnswer(
        page,
        { ...request, probe: { patch: { ...patch, heads: all } } },
        "all heads",
    );
    whole.forEach((row, n) => equal(row.after, row.second, `word ${n} is that of B`));
    await page.reload();
    await page.waitForSelector("#patched-list");
    await settled(page);
    check((await text(page, "#patched-list")).includes("cross 1.1, cross 1.2"), "after a reload");
    await page.click("#unpatch");
    await settled(page);
    await showsAnswer(page, { ...request, probe: {} }, "none");
    await close(page);
});

await test("sentences_of_other_lengths_are_refused", async () => {
    const page = await study(`${SENTENCE}&second=the+cat+sleeps&patched=encoder.1.1`);
    await page.waitForFunction(() =>
        document.getElementById("study-message")?.textContent.includes("4 in the other one"),
    );
    await page.click("#unpatch");
    await settled(page);
    check((await shown(page)).length > 0, "it goes on");
    problems.splice(0).forEach((line) => check(line.includes("400"), line));
    await close(page);
});

// ----------------------------------------------------------------- one word -----

const tableOf = async (page, id) => {
    await page.click(`#${id}-table`);
    return page
        .locator(`figure:has(#${id}) tbody tr`)
        .evaluateAll((rows) =>
            rows.map((row) => [...row.children].map((cell) => cell.textContent)),
        );
};

await test("a_word_is_taken_apart", async () => {
    const page = await study(`${SENTENCE}&hide=1`);
    await page.waitForFunction(() => document.title.includes("the black cat sleeps"));
    await settled(page);
    await page.click("#said-0");
    await page.waitForSelector("#shares");
    const request = { text: "the black cat sleeps", probe: { hidden: [1], row: 0 } };
    const { shares, rows } = await ask(address, request);
    const told = await tableOf(page, "shares");
    equal(told.length, 4, "decoder and cross, two layers each");
    for (const { kind, layer, head, share } of shares.heads) {
        const row = told.find(([name]) => name === `${kind} ${layer}`);
        near(Number(row[head]), share, 1e-6 * Math.abs(share) + 1e-12, `${kind} ${layer}.${head}`);
    }
    const all = [...shares.heads, ...shares.others].reduce((sum, { share }) => sum + share, 0);
    near(all, shares.logit, 1e-4, "shares sum to the logit");
    await page.waitForSelector("#word-effect");
    const other = rows[0].likely_after.find(({ number }) => number !== rows[0].number);
    await page.click(`#word-${other.number}`);
    await page.waitForFunction(
        (word) =>
            [...document.querySelectorAll("h3")].some((it) =>
                it.textContent.includes(`logit of \u201c${word}\u201d`),
            ),
        other.word,
    );
    check((await hashOf(page)).includes(`word=${other.number}`), await hashOf(page));
    await page.click("#said-0");
    await page.waitForSelector("#study-word", { state: "detached" });
    await close(page);
});

await test("each_layer_says_a_word", async () => {
    const page = await study(`${SENTENCE}&hide=1`);
    await page.waitForFunction(() => document.title.includes("the black cat sleeps"));
    await settled(page);
    const request = { text: "the black cat sleeps", probe: { hidden: [1], lens: true } };
    const { lens, rows } = await ask(address, request);
    const table = await page
        .locator("#study-lens tbody tr")
        .evaluateAll((list) =>
            list.map((row) =>
                [...row.querySelectorAll("td")].map((cell) => cell.firstChild.textContent),
            ),
        );
    const plain = (word) => word.replace(/^<(begin|end|unknown)>$/, "\u2039$1\u203a");
    equal(table.length, lens.length, "rows");
    lens.forEach((levels, n) => {
        levels.forEach(({ likely }, level) =>
            equal(table[n][level], plain(likely[0].word), `row ${n}, level ${level}`),
        );
        equal(levels.at(-1).expected, rows[n].after, `row ${n}: the last level is the output`);
    });
    await close(page);
});

// ------------------------------------------------------------ other models -----

await test("an_encoder_turns_its_vector", async () => {
    const page = await study("text=the+cat+sleeps", {}, encoder);
    await page.waitForFunction(() => document.title.includes("the cat sleeps"));
    await page.click("#hide-2");
    await settled(page);
    const { turned } = await ask(encoder, { text: "the cat sleeps", probe: { hidden: [2] } });
    check(turned > 1e-6, `it turns by ${turned}`);
    await page.waitForFunction(
        (wanted) => document.getElementById("study-sum").textContent.includes(wanted),
        turned.toFixed(4),
    );
    await close(page);
});

await test("a_decoder_hides_words_of_its_text", async () => {
    const page = await study("text=the+cat+sleeps", {}, decoder);
    await page.waitForFunction(() => document.title.includes("the cat sleeps"));
    await page.click("#hide-0");
    await settled(page);
    const { rows } = await ask(decoder, { text: "the cat sleeps", probe: { hidden: [0] } });
    const known = rows.filter(({ word }) => word !== undefined);
    equal((await shown(page)).length, known.length, "rows");
    check(
        known.some((row) => row.before !== row.after),
        "it changes something",
    );
    await close(page);
});

await test("an_encoder_decoder_writes_anew", async () => {
    const { written, rows } = await ask(both, { text: "the cat sleeps", probe: { hidden: [1] } });
    check(typeof written.before === "string" && typeof written.after === "string", "two texts");
    check(
        rows.some((row) => row.before !== row.after),
        "it changes something",
    );
    const page = await study("text=the+cat+sleeps&hide=1", {}, both);
    await page.waitForSelector("#study-written");
    await close(page);
});

await test("a_page_from_disk_says_what_it_needs", async () => {
    const page = await open(pagePath, "view=study&hide=2");
    check((await text(page, "#study-message")).includes("mha serve"), "which page has it");
    await close(page);
});

// ---------------------------------------------------------------- the rest -----

// Answers that arrive while a button is pressed must not replace it.
await test("a_click_is_not_lost_to_an_answer", async () => {
    const page = await openAddress(address, `kind=cross&${SENTENCE}`);
    await page.waitForFunction(() => document.title.includes("the black cat sleeps"));
    await page.waitForLoadState("networkidle");
    const answered = page.waitForResponse(() => true);
    await page.locator("#zero-1-1").hover();
    await page.evaluate(() => {
        document.getElementById("zero-1-1").dataset.first = "1";
    });
    await page.mouse.down();
    await page.evaluate(() => document.getElementById("uniform-2-2").click());
    await (await answered).finished();
    await page.waitForTimeout(200);
    equal(await page.getAttribute("#zero-1-1", "data-first"), "1", "the pressed button stays");
    await page.mouse.up();
    await page.waitForSelector("#reopen-cross-1-1");
    equal(await page.locator("#reopen-cross-2-2").count(), 1, "both heads are changed");
    await close(page);
});

await test("accessible_and_narrow", async () => {
    for (const theme of ["light", "dark"]) {
        const page = await study(`${SENTENCE}&hide=2&said=1&theme=${theme}`);
        await settled(page);
        equal((await axeProblems(page, toolsPath)).join("\n"), "", `axe, ${theme}`);
        for (const width of [390, 2560]) {
            await page.setViewportSize({ width, height: 900 });
            await page.waitForTimeout(200);
            check((await overflow(page)) <= 0, `wider than ${width} by ${await overflow(page)}`);
        }
        await close(page);
    }
});

await test("nothing_went_wrong", () => {
    equal(problems.join("\n"), "", "console and requests");
});

await end();
finish("test_study");
