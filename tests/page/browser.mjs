// SPDX-License-Identifier: MIT
// Pages of "mha view" in a real browser, for the tests: what is in the file, how it is opened, and
// what went wrong meanwhile.
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const BEGIN = '<script id="data" type="application/json">';

// The data of a page: where they are in its text, and what they are.
export function dataPlace(html) {
    const from = html.indexOf(BEGIN) + BEGIN.length;
    return [from, html.indexOf("</script>", from)];
}

export function dataOf(path) {
    const html = readFileSync(path, "utf8");
    return JSON.parse(html.slice(...dataPlace(html)));
}

export function floats(text) {
    const bytes = Buffer.from(text, "base64");
    return Array.from({ length: bytes.length / 4 }, (_, n) => bytes.readFloatLE(4 * n));
}

export const text = (page, selector) => page.locator(selector).textContent();
export const hashOf = (page) => page.evaluate(() => location.hash);
export const focused = (page) => page.evaluate(() => document.activeElement.id);

// Shows another state of an open page.
export async function goTo(page, hash) {
    await page.evaluate((to) => {
        location.hash = to;
    }, hash);
    await page.waitForFunction(() => document.querySelector("#view > *"));
    await page.waitForTimeout(50);
}

// A function that waits until all requests of a page from now on are answered, those too that an
// answer leads to, and drawn.
export function answersOf(page) {
    const open = new Set();
    page.on("request", (request) => open.add(request));
    page.on("requestfinished", (request) => open.delete(request));
    page.on("requestfailed", (request) => open.delete(request));
    return async () => {
        for (let quiet = 0; quiet < 5; quiet = open.size === 0 ? quiet + 1 : 0) {
            await page.waitForTimeout(100);
            await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(drawn)));
        }
    };
}

// The policy that a page should have: its own script runs, known by its hash, and no other. The text is
// that of a page; more: what is allowed to a page that is served or that runs its model.
export function policyOf(html, { resources = "", scripts = "" } = {}) {
    const begin = html.indexOf('<script type="module">') + '<script type="module">'.length;
    const script = html.slice(begin, html.indexOf("</script>", begin));
    const hash = createHash("sha256").update(script).digest("base64");
    return (
        `default-src 'none'; ${resources}style-src 'unsafe-inline'; ` +
        `script-src ${scripts}'sha256-${hash}'; img-src data: blob:`
    );
}

export const policyIn = (page) =>
    page.getAttribute('meta[http-equiv="Content-Security-Policy"]', "content");

// Whether a script, or a handler in an attribute, that somebody puts into a page runs.
export function injectedRuns(page) {
    return page.evaluate(async () => {
        const script = document.createElement("script");
        script.textContent = "window.broken = 'script'";
        const button = document.createElement("button");
        button.setAttribute("onclick", "window.broken = 'attribute'");
        document.body.append(script, button);
        button.click();
        await new Promise((resolve) => setTimeout(resolve, 50));
        script.remove();
        button.remove();
        return window.broken !== undefined;
    });
}

// Takes what the console says of refused scripts out of the problems; returns how often it did.
export function refusals(problems) {
    const refused = (text) => text.includes("Content Security Policy");
    const count = problems.filter(refused).length;
    problems.splice(0, problems.length, ...problems.filter((text) => !refused(text)));
    return count;
}

// Pixels by which a page is wider than its window.
export function overflow(page) {
    return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
}

// Waits until colours that are on their way, after a change of the theme for instance, have arrived.
async function transitionsEnd(page) {
    await page.evaluate(async () => {
        // A change of the theme is noticed by the page in the next frame, and begins to be seen in that after it.
        for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
        await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
    });
}

// A card of the wall has a name that says more than its letters and bars: one rule, and no other, is not
// applied to cards.
function isNamedCard(id, { html }) {
    return id === "label-content-name-mismatch" && /^<button[^>]* id="card-\d+-\d+"/.test(html);
}

// What axe-core finds wrong with a page, as short texts.
export async function axeProblems(page, toolsPath) {
    const axe = readFileSync(join(toolsPath, "node_modules/axe-core/axe.min.js"), "utf8");
    await transitionsEnd(page);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run({ include: [["html"]] }));
    return violations
        .map(({ id, nodes }) => ({ id, nodes: nodes.filter((node) => !isNamedCard(id, node)) }))
        .filter(({ nodes }) => nodes.length > 0)
        .map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)}`);
}

// {open(path, hash, options), openAddress(address, hash, options) of a server, save(page, selector),
// scratch, problems, end()}: problems are errors
// and warnings of the console, dialogs, and requests that leave the file.
export async function startBrowser(playwrightPath, browserPath) {
    const { chromium } = await import(pathToFileURL(join(playwrightPath, "index.mjs")));
    const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
    const scratch = mkdtempSync(join(tmpdir(), "mha-view-"));
    const problems = [];

    function watch(page, own) {
        page.on("console", (message) => {
            if (["error", "warning"].includes(message.type())) problems.push(message.text());
        });
        page.on("pageerror", (error) => problems.push(String(error)));
        page.on("dialog", (dialog) => problems.push(`dialog ${dialog.message()}`));
        page.on("request", (request) => {
            if (!/^(file|blob|data):/.test(request.url()) && !request.url().startsWith(own))
                problems.push(`request to ${request.url()}`);
        });
    }

    function open(path, hash = "", options = {}) {
        return openAddress(String(pathToFileURL(path)), hash, options);
    }

    async function openAddress(address, hash = "", options = {}) {
        const context = await browser.newContext({
            viewport: { width: 1300, height: 900 },
            acceptDownloads: true,
            ...options,
        });
        context.setDefaultTimeout(600000); // a busy machine is slow, not broken
        const page = await context.newPage();
        watch(page, address);
        await page.goto(`${address}#${hash}`);
        await page.waitForSelector("#view > *");
        return page;
    }

    async function save(page, selector) {
        const [file] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
        const path = join(scratch, file.suggestedFilename());
        await file.saveAs(path);
        return { name: file.suggestedFilename(), bytes: readFileSync(path) };
    }

    async function end() {
        await browser.close();
        rmSync(scratch, { recursive: true });
    }
    return { open, openAddress, save, scratch, problems, end };
}
