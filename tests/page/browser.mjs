// SPDX-License-Identifier: MIT
// Pages of "mha view" in a real browser, for the tests: what is in the file, how it is opened, and
// what went wrong meanwhile.
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

// {open(path, hash, options), save(page, selector), scratch, problems, end()}: problems are errors
// and warnings of the console, dialogs, and requests that leave the file.
export async function startBrowser(playwrightPath, browserPath) {
    const { chromium } = await import(pathToFileURL(join(playwrightPath, "index.mjs")));
    const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
    const scratch = mkdtempSync(join(tmpdir(), "mha-view-"));
    const problems = [];

    function watch(page) {
        page.on("console", (message) => {
            if (["error", "warning"].includes(message.type())) problems.push(message.text());
        });
        page.on("pageerror", (error) => problems.push(String(error)));
        page.on("dialog", (dialog) => problems.push(`dialog ${dialog.message()}`));
        page.on("request", (request) => {
            if (!/^(file|blob|data):/.test(request.url()))
                problems.push(`request to ${request.url()}`);
        });
    }

    async function open(path, hash = "", options = {}) {
        const context = await browser.newContext({
            viewport: { width: 1300, height: 900 },
            acceptDownloads: true,
            ...options,
        });
        context.setDefaultTimeout(600000); // a busy machine is slow, not broken
        const page = await context.newPage();
        watch(page);
        await page.goto(`${pathToFileURL(path)}#${hash}`);
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
    return { open, save, scratch, problems, end };
}
