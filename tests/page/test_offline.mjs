// SPDX-License-Identifier: MIT
// Pages of "mha view --live" of our translators, opened from disk with the network off. Arguments:
// playwright-core, the browser, the folder that test_offline.sh prepared: NAME.html, the page; what the
// command line says of another sentence; NAME-static.html, -show.json and -translate.json. q8.html is
// en-fr with rounded weights.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
    axeProblems,
    dataOf,
    floats,
    goTo,
    injectedRuns,
    policyIn,
    policyOf,
    refusals,
    startBrowser,
    text,
} from "./browser.mjs";
import { check, equal, finish, near, test } from "./harness.mjs";

const [playwrightPath, browserPath, folder] = process.argv.slice(2);
const browser = await startBrowser(playwrightPath, browserPath);
const readJson = (name) => JSON.parse(readFileSync(join(folder, name), "utf8"));
const OFFLINE = { offline: true };

async function open(name, hash = "") {
    const page = await browser.open(join(folder, `${name}.html`), hash, OFFLINE);
    page.setDefaultTimeout(120000); // of no importance unless the page never answers
    return page;
}

const shows = (page, sentence) =>
    page.waitForFunction((words) => document.title.endsWith(words), sentence);
const says = (page, words) =>
    page.waitForFunction(
        (part) => document.getElementById("live-message").textContent.includes(part),
        words,
    );

// What the page's own Worker answers to a request, asked beside the page.
function askWorker(page, request) {
    return page.evaluate(async (body) => {
        const part = (id) => document.getElementById(id).textContent;
        const engine = JSON.parse(part("live-engine"));
        const files = engine.files.map((name, n) => ({ name, text: part(`live-file-${n}`) }));
        const worker = new Worker(URL.createObjectURL(new Blob([part("live-worker")])));
        worker.postMessage({
            open: { ...engine, files, module: part("live-module"), command: "x" },
        });
        worker.postMessage({ body: JSON.stringify(body) });
        const answer = await new Promise((resolve) => {
            worker.onmessage = ({ data }) => (data.opened ? null : resolve(data));
        });
        worker.terminate();
        return answer;
    }, request);
}

// Numbers that functions of the C library take part in, which differ in their last digits.
function nearly(got, wanted, what) {
    wanted.forEach((value, n) => near(got[n] ?? NaN, value ?? NaN, 1e-6, `${what} ${n}`));
    equal(got.length, wanted.length, `${what}: how many`);
}

function sameKind(got, wanted) {
    for (const name of ["name", "layers", "heads", "rows", "columns"])
        equal(got[name], wanted[name], name);
    got.weights.forEach((weights, map) =>
        equal(weights, wanted.weights[map], `${got.name}: weights of map ${map}`),
    );
    for (const name of ["q", "k", "v", "value_norms"])
        equal(got[name], wanted[name], `${got.name}: ${name}`);
    for (const name of got.losses ? ["losses", "uniform_losses"] : [])
        nearly(floats(got[name]), floats(wanted[name]), `${got.name}: ${name}`);
    for (const [name, values] of Object.entries(wanted.measures))
        nearly(
            got.measures[name].map((value) => value ?? 0),
            values.map((value) => value ?? 0),
            `${got.name}: ${name}`,
        );
    if (got.losses)
        equal(JSON.stringify(got.changed), JSON.stringify(wanted.changed), `${got.name}: changed`);
}

/* Waits for the losses of single heads, which come after the answer. */
function hasLosses(page) {
    return page.waitForFunction(() =>
        /loss/.test(document.getElementById("card-2-1").getAttribute("aria-label")),
    );
}

for (const name of ["lab", "en-fr"]) {
    const [wanted] = dataOf(join(folder, `${name}-static.html`)).sentences;
    const [translated] = readJson(`${name}-translate.json`);
    const begun = performance.now();
    const since = (start) => `${((performance.now() - start) / 1000).toFixed(2)} s`;

    await test(`${name}_answers_what_the_command_line_says`, async () => {
        const page = await open(name);
        const effects = name === "lab"; // of en-fr they take seconds
        const { status, text: answer } = await askWorker(page, { text: wanted.text, effects });
        equal(status, 200, "status");
        const [got] = JSON.parse(answer).sentences;
        for (const list of ["source", "target", "expected", "said"])
            equal(got[list].join(" "), wanted[list].join(" "), list);
        equal(got.translation, wanted.translation, "translation of mha view");
        equal(got.translation, translated.target, "translation of mha translate");
        nearly(got.log_likelihood, wanted.log_likelihood, "log-likelihood");
        got.kinds.forEach((kind, n) => sameKind(kind, wanted.kinds[n]));
        await page.close();
    });

    await test(`${name}_types_closes_and_opens`, async () => {
        const start = performance.now();
        const page = await open(name, `kind=cross&text=${encodeURIComponent(wanted.text)}`);
        await says(page, wanted.translation);
        await shows(page, wanted.text);
        console.log(`     ${name}: opened, and the first answer after ${since(start)}`);
        const again = performance.now();
        await page.fill("#live-text", "the dog sleeps");
        await shows(page, "the dog sleeps");
        console.log(`     ${name}: the next one ${since(again)} after typing`);
        await page.fill("#live-text", wanted.text);
        await shows(page, wanted.text);
        await hasLosses(page); // which draw the page once more: a click must not fall between
        const closing = performance.now();
        await page.click("#zero-1-1");
        await page.waitForSelector("#reopen-cross-1-1");
        console.log(`     ${name}: a head was closed in ${since(closing)}`);
        const closed = await askWorker(page, {
            text: wanted.text,
            effects: false,
            changes: [{ kind: "cross", layer: 1, head: 1, change: "zero" }],
        });
        const [{ translation, kinds }] = JSON.parse(closed.text).sentences;
        for (const part of ["losses", "uniform_losses", "changed"])
            equal(kinds[0][part], undefined, `${part} without a request for effects`);
        check((await text(page, "#live-message")).includes(translation), "the translation without");
        await hasLosses(page);
        await page.click("#reopen-all");
        await says(page, "All heads are enabled");
        await page.close();
    });
    console.log(`     ${name}: ${since(begun)} in all`);
}

await test("the_first_sentence_has_the_same_bits", async () => {
    const page = await open("lab");
    const data = dataOf(join(folder, "lab.html"));
    const [first] = data.sentences;
    const answer = await askWorker(page, { text: first.text });
    const [got] = JSON.parse(answer.text).sentences;
    got.kinds.forEach((kind, n) => sameKind(kind, first.kinds[n]));
    equal(data.study.sentences, 10, "the study is in the page");
    await page.close();
});

// The numbers in the page are those that the command line computed with the rounded weights.
await test("rounded_weights_have_the_same_bits_too", async () => {
    const page = await open("q8");
    const [first] = dataOf(join(folder, "q8.html")).sentences;
    const answer = await askWorker(page, { text: first.text, effects: false });
    equal(answer.status, 200, answer.text.slice(0, 200));
    const [got] = JSON.parse(answer.text).sentences;
    equal(got.translation, first.translation, "translation");
    got.kinds.forEach((kind, n) => sameKind(kind, first.kinds[n]));
    const [whole] = dataOf(join(folder, "en-fr.html")).sentences;
    check(whole.text === first.text, "the same sentence");
    check(whole.kinds[0].weights[0] !== first.kinds[0].weights[0], "of a model that is rounded");
    const small = statSync(join(folder, "q8.html")).size,
        large = statSync(join(folder, "en-fr.html")).size;
    check(small < 0.75 * large, `a smaller page: ${small}, not ${large} bytes`);
    check((await text(page, "#command")).includes("--store 'q8'"), await text(page, "#command"));
    await page.close();
});

await test("the_page_may_not_connect_or_run_other_scripts", async () => {
    const page = await open("lab");
    const html = readFileSync(join(folder, "lab.html"), "utf8");
    const more = { resources: "worker-src blob:; ", scripts: "'wasm-unsafe-eval' " };
    equal(await policyIn(page), policyOf(html, more), "the policy");
    check(!(await injectedRuns(page)), "a script that is put into the page does not run");
    equal(refusals(browser.problems), 2, "the browser says that it refused both");
    await page.close();
});

await test("a_cell_shows_the_number_of_mha_show", async () => {
    const { maps, text: sentence } = readJson("lab-show.json");
    const map = maps.find(({ kind, layer, head }) => kind === "cross" && layer === 2 && head === 3);
    const page = await open(
        "lab",
        `view=head&kind=cross&layer=2&head=3&text=${encodeURIComponent(sentence)}`,
    );
    await shows(page, sentence);
    const csv = (await browser.save(page, "#main-csv")).bytes.toString().trim().split("\n");
    const shown = csv.slice(1).flatMap((line) => line.split(",").slice(1).map(Number));
    const [{ kinds }] = dataOf(join(folder, "lab-static.html")).sentences;
    const exact = floats(kinds[2].weights[kinds[2].heads + 2]);
    exact.forEach((value, n) => equal(Math.fround(shown[n]), value, `cell ${n}`));
    map.cells.flat().forEach((value, n) => equal(Math.fround(value), exact[n], `show, cell ${n}`));
    await page.close();
});

await test("no_violation_of_accessibility", async () => {
    const page = await open("lab");
    for (const view of ["wall", "compare", "flow", "compute", "model", "study"])
        for (const theme of ["light", "dark"]) {
            await goTo(page, `view=${view}&theme=${theme}`);
            await page.waitForTimeout(500); // answers of the model, which draw the page again
            const found = await axeProblems(page, join(playwrightPath, "../.."));
            equal(found.join("; "), "", `${view}, ${theme}`);
        }
    await page.close();
});

await test("a_hostile_address_does_no_harm", async () => {
    const bad = [
        "text=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&closed=cross.1.1.zero%2C__proto__.1.1.zero",
        `text=${"a".repeat(20000)}`,
        "closed=cross.99.99.zero&layer=1e9&view=%3Cscript%3E&theme=%22onload%3D",
        "closed=cross.1.1.zero.zero%2Cencoder.-1.NaN.uniform&row=-5&column=99999&sentence=7",
        "%E0%A4%A&text=%00%ff",
        "view=constructor&mode=constructor&sort=constructor&form=x&mix=y&kind=constructor",
        "view=head&mode=constructor&other=__proto__&__proto__=1&theme=constructor",
        "view=compare&other=9.x.9.9&closed=encoder.1.1.constructor",
    ];
    for (const hash of bad) {
        const page = await open("lab", hash);
        await page.fill("#live-text", "the cat sleeps");
        await page.click("#live-go");
        const closed = page.locator("#reopen-all");
        if (await closed.count()) await closed.click();
        await shows(page, "the cat sleeps");
        equal(await page.locator("main img, main script, header img").count(), 0, "no markup");
        await page.close();
    }
});

await test("nothing_left_the_file", async () => {
    equal(browser.problems.join("\n"), "", "console, dialogs and requests");
});

await browser.end();
finish("test_offline");
