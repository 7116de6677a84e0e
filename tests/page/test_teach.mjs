// SPDX-License-Identifier: MIT
// The lecture, the first screen, the Model view, several heads in one figure and the way back, in a
// real browser. Arguments: the folder of playwright-core and axe-core, the browser, the modules of
// the page, a page of a model of 2 layers with 4 heads, one with a lecture of three stops whose texts
// are hostile, one of a sentence with an unknown word, and the address of "mha serve", which is empty
// if there is no server.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
    axeProblems,
    dataOf,
    goTo,
    hashOf,
    injectedRuns,
    overflow,
    policyIn,
    policyOf,
    refusals,
    startBrowser,
    text,
} from "./browser.mjs";
import { check, equal, finish, test } from "./harness.mjs";

const [toolsPath, browserPath, webPath, pagePath, hostilePath, unknownPath, address] =
    process.argv.slice(2);
const { open, openAddress, problems, scratch, end } = await startBrowser(
    join(toolsPath, "node_modules/playwright-core"),
    browserPath,
);
const truth = dataOf(pagePath);
const close = (page) => page.context().close();

// ---------------------------------------------------------------- lecture -----

await test("a_lecture_by_keyboard", async () => {
    const page = await open(pagePath);
    await page.keyboard.press("l");
    const { stops } = truth.lecture;
    equal(stops.length, 10, "stops");
    for (let n = 0; n < stops.length; n++) {
        equal(await text(page, "#stop-title"), `${n + 1}. ${stops[n].title}`, `stop ${n + 1}`);
        const wanted = new URLSearchParams(stops[n].state).get("view");
        equal(await page.locator(`#view-${wanted}`).getAttribute("aria-pressed"), "true", wanted);
        equal(await page.locator("#compute-message").count(), 0, "the steps are there");
        await page.keyboard.press(n % 2 ? "PageDown" : "ArrowRight");
    }
    check(await page.locator("#stop-next").isDisabled(), "the last stop");
    await page.keyboard.press("ArrowLeft");
    check((await text(page, "#stop-title")).startsWith("9."), "back");
    await page.reload();
    await page.waitForSelector("#stop-title");
    check((await text(page, "#stop-title")).startsWith("9."), "after a reload");
    const size = await page
        .locator(".stop-text")
        .evaluate((it) => parseFloat(getComputedStyle(it).fontSize));
    check(size >= 22, `type for a projector: ${size} pixels`);
    await page.keyboard.press("Escape");
    check(await page.locator("#lecture").isHidden(), "it ends");
    await close(page);
});

await test("a_lecture_by_mouse", async () => {
    const page = await open(pagePath);
    await page.click("#lecture-start");
    await page.click("#stop-next");
    check((await text(page, "#stop-title")).startsWith("2."), "next");
    await page.click("#view-wall");
    check((await text(page, "#stop-title")).startsWith("2."), "another view, the same stop");
    await page.click("#stop-again");
    check((await hashOf(page)).includes("view=compute"), "the state of the stop again");
    await page.click("#lecture-end");
    check(await page.locator("#lecture").isHidden(), "it ends");
    await close(page);
});

await test("a_hostile_lecture_does_no_harm", async () => {
    const page = await open(hostilePath);
    await page.keyboard.press("l");
    equal(await page.locator("#lecture img, #lecture script").count(), 0, "texts are texts");
    check((await text(page, "#stop-title")).includes("<img"), "and are shown");
    check((await overflow(page)) <= 0, "long words do not widen the page");
    for (let n = 0; n < 3; n++) await page.keyboard.press("ArrowRight");
    equal(await page.evaluate(() => window.broken), undefined, "nothing of it runs");
    check((await page.locator("#view > *").count()) > 0, "an impossible state is limited");
    await close(page);
});

await test("lectures_may_name_every_field_of_the_state", () => {
    const script = readFileSync(join(webPath, "state.js"), "utf8");
    const block = script.slice(script.indexOf("BEGINNING = {"), script.indexOf("};"));
    const names = [...block.matchAll(/^ {4}([a-z]+):/gm)].map(([, name]) => name);
    const reader = readFileSync(join(webPath, "../page_lecture.c"), "utf8");
    const list = reader.slice(reader.indexOf("fields[] ="), reader.indexOf("};"));
    for (const name of names) check(list.includes(`"${name}"`), `page_lecture.c knows ${name}`);
    equal([...list.matchAll(/"[a-z]+"/g)].length, names.length, "and no other names");
});

// ----------------------------------------------------------------- policy -----

await test("only_the_script_of_the_page_runs", async () => {
    const html = readFileSync(pagePath, "utf8");
    const page = await open(pagePath);
    equal(await policyIn(page), policyOf(html), "the policy of a file");
    check(!(await injectedRuns(page)), "a script that is put into it");
    equal(refusals(problems), 2, "the browser says that it refused both");
    await close(page);

    const foreign = join(scratch, "foreign.html");
    writeFileSync(foreign, html.replace("<header>", "<script>window.broken = 1</script><header>"));
    const changed = await open(foreign);
    equal(await changed.evaluate(() => window.broken), undefined, "a script in the file");
    check((await changed.locator(".wall .card").count()) > 0, "the page's own does run");
    equal(refusals(problems), 1, "the browser says that it refused it");
    await close(changed);
});

await test("a_served_page_asks_its_server_and_runs_no_other_script", async () => {
    if (!address) return;
    const answer = await fetch(address);
    equal(answer.headers.get("content-security-policy"), "frame-ancestors 'none'", "the header");
    const page = await openAddress(address);
    const wanted = policyOf(await answer.text(), { resources: "connect-src 'self'; " });
    equal(await policyIn(page), wanted, "the policy of the page");
    check(!(await injectedRuns(page)), "a script that is put into it");
    equal(refusals(problems), 2, "the browser says that it refused both");
    await close(page);
});

// ----------------------------------------------------------- first screen -----

await test("the_first_screen_says_what_this_is", async () => {
    const page = await open(pagePath);
    check(await page.locator("#intro .prose").isVisible(), "open at the beginning");
    check((await text(page, "#intro")).includes("attention head"), "what this is");
    check((await text(page, "#intro")).includes("only the words"), "what the model cannot do");
    equal(await page.locator(".model-map button").count(), 6, "two layers of three kinds");
    const roles = await page.locator(".different .badge").allTextContents();
    equal(new Set(roles).size, roles.length, `heads with different roles: ${roles}`);
    await page.click("#map-cross-2");
    equal(await page.locator(".wall .card").count(), 4, "the heads of one attention");
    check((await hashOf(page)).includes("kind=cross"), await hashOf(page));
    check(!(await page.locator("#intro .prose").isVisible()), "then it makes room");
    await close(page);
});

await test("unknown_words_are_marked", async () => {
    const page = await open(unknownPath);
    equal((await page.locator(".word.unknown").allTextContents()).join(), "zyx", "in the source");
    check((await text(page, "#word-legend")).includes("does not know"), "with a legend");
    await close(page);
    const known = await open(pagePath);
    equal(await known.locator(".unknown").count(), 0, "none");
    await close(known);
});

// ------------------------------------------------------------------ model -----

await test("the_model_on_one_sheet", async () => {
    const page = await open(pagePath, "view=model");
    equal(await page.locator(".sheet-cell").count(), 24, "all heads");
    await page.focus("#sheet-encoder-1-1");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    check(/view=head/.test(await hashOf(page)), "a head by keyboard");
    equal(await page.locator("#head").inputValue(), "2", "the second one");
    await page.goBack();
    await page.click("#sheet-cross-2-4");
    check(/view=head&kind=cross&layer=2&head=4/.test(await hashOf(page)), await hashOf(page));
    await close(page);
    const wide = await open(pagePath, "view=model", { viewport: { width: 2560, height: 1300 } });
    const box = await wide.locator(".sheet").boundingBox();
    check(box.width > 2400, `the width of a projector is used: ${box.width}`);
    await close(wide);
});

await test("several_heads_in_one_figure", async () => {
    const page = await open(pagePath, "view=head&kind=encoder&form=arcs&heads=1,3");
    await page.focus("#main");
    await page.keyboard.press("ArrowDown");
    check(/1\.1 .*, 1\.3 /.test(await text(page, "#main-value")), await text(page, "#main-value"));
    await page.click("#heads-2");
    check(/heads=1%2C2%2C3/.test(await hashOf(page)), await hashOf(page));
    await goTo(page, "view=align&mix=several&heads=2,4");
    await page.focus("#main");
    await page.keyboard.press("ArrowDown");
    check(/\.2 .*, \d\.4 /.test(await text(page, "#main-value")), await text(page, "#main-value"));
    await close(page);
});

// --------------------------------------------------------------- navigation -----

await test("back_goes_back", async () => {
    const page = await open(pagePath);
    await page.click("#view-model");
    await page.click("#sheet-decoder-2-3");
    await page.click("#view-compute");
    await page.goBack();
    check(/view=head&kind=decoder&layer=2&head=3/.test(await hashOf(page)), await hashOf(page));
    equal(await page.locator("#head").inputValue(), "3", "the head is shown again");
    await page.goBack();
    check(await page.locator(".sheet").isVisible(), "the sheet is shown again");
    await page.keyboard.press("t");
    await page.goBack();
    equal(await page.locator(".wall").count(), 1, "a theme is no place to go back to");
    await page.goForward();
    check(await page.locator(".sheet").isVisible(), "and forward");
    await close(page);
});

await test("all_outlined_pairs_are_listed", async () => {
    const page = await open(pagePath, "view=head&kind=cross");
    const { alignment } = truth.sentences[0];
    const pairs = alignment.reduce((sum, sources) => sum + sources.length, 0);
    equal(await page.locator(".relations li").count(), pairs, "pairs of the alignment");
    await close(page);
});

const violations = (page) => axeProblems(page, toolsPath);

await test("no_violation_of_accessibility", async () => {
    const page = await open(pagePath);
    for (const hash of [
        "",
        "view=model",
        "view=head&form=arcs&heads=1,2",
        "view=head&kind=cross&row=1&column=1",
        "view=compare",
        "view=align",
        "view=flow",
        "view=flow&kind=cross",
        "view=study",
        "view=study&kind=cross",
        "stop=1&view=compute",
    ])
        for (const theme of ["light", "dark"]) {
            await goTo(page, `${hash}&theme=${theme}`);
            const found = await violations(page);
            equal(found.length, 0, `${hash}, ${theme}: ${found.join("; ")}`);
        }
    await close(page);
});

await test("no_violation_on_a_telephone_or_a_projector", async () => {
    for (const width of [390, 2560]) {
        const page = await open(pagePath, "", { viewport: { width, height: 800 } });
        for (const hash of ["", "view=head&kind=cross&row=1&column=1", "view=align&theme=dark"]) {
            await goTo(page, hash);
            const found = await violations(page);
            equal(found.length, 0, `${hash} at ${width}: ${found.join("; ")}`);
        }
        await close(page);
    }
});

await test("nothing_scrolls_sideways_in_a_narrow_window", async () => {
    const page = await open(pagePath, "", { viewport: { width: 390, height: 800 } });
    for (const hash of [
        "",
        "view=model",
        "view=align",
        "view=align&mix=several",
        "view=flow",
        "view=flow&kind=cross",
        "view=head&form=arcs&heads=1,2",
        "view=wall&stop=3",
    ]) {
        await goTo(page, hash);
        check((await overflow(page)) <= 0, `${hash}: ${await overflow(page)}`);
        const frames = await page
            .locator("figure .scroll")
            .evaluateAll((list) => list.map((it) => it.scrollWidth - it.clientWidth));
        check(
            frames.every((over) => over <= 0),
            `${hash}: a figure is wider than the window by ${frames}`,
        );
    }
    await close(page);
});

// ------------------------------------------------------------------- live -----

await test("the_live_bar_stays_and_shows_what_changed", async () => {
    if (!address) return;
    const page = await openAddress(address);
    await page.click("#chip-2");
    await page.waitForFunction(() => location.hash.includes("text="));
    const chip = await text(page, "#chip-2");
    equal(await page.locator("#live-text").inputValue(), chip, "a chip is asked for");
    await page.click("#zero-1-1");
    await page.waitForSelector("#reopen-encoder-1-1");
    await page.evaluate(() => window.scrollTo(0, 10000));
    const box = await page.locator("#live").boundingBox();
    check(box.y >= -1 && box.y < 50, `it stays in sight: ${box.y}`);
    for (const scheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: scheme });
        equal((await violations(page)).join("; "), "", `a head is disabled, ${scheme}`);
    }
    await page.goBack();
    await page.waitForFunction(() => !document.getElementById("reopen-all"));
    check(!(await hashOf(page)).includes("closed"), "Back enables the head again");
    await close(page);
});

await test("no_console_error_and_no_request_leaves_the_file", () => {
    equal(problems.length, 0, problems.slice(0, 5).join("; "));
});

await end();
finish("test_teach");
