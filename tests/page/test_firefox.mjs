// SPDX-License-Identifier: MIT
// A live page in Firefox, from disk. Arguments: puppeteer-core, Firefox, the folder that
// test_firefox.sh prepared.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { dataOf } from "./browser.mjs";
import { check, equal, finish, test } from "./harness.mjs";

const [puppeteerPath, browserPath, folder] = process.argv.slice(2);
const { main } = JSON.parse(readFileSync(join(puppeteerPath, "package.json"), "utf8"));
const { default: puppeteer } = await import(pathToFileURL(join(puppeteerPath, main)));
const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: browserPath,
    headless: true,
    timeout: 0,
    protocolTimeout: 600000,
});
const [wanted] = dataOf(join(folder, "static.html")).sentences;
const problems = [];

// Waits until a condition holds in the page. puppeteer's own waiting makes a function of a text there,
// which the policy of the page forbids and newer versions of Firefox refuse.
async function until(page, what, condition, ...args) {
    for (let tries = 0; tries < 2400; tries++) {
        if (await page.evaluate(condition, ...args)) return;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`never: ${what}`);
}

// A click with the mouse; again if the page was drawn between finding the button and reaching it.
async function press(page, id) {
    for (let tries = 0; ; tries++) {
        try {
            return await page.click(`#${id}`);
        } catch (error) {
            if (tries === 100) throw error;
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }
}

await test("firefox_translates_and_closes_a_head", async () => {
    const page = await browser.newPage();
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
        if (["error", "warn"].includes(message.type())) problems.push(message.text());
    });
    const start = performance.now();
    const text = encodeURIComponent(wanted.text);
    await page.goto(`${pathToFileURL(join(folder, "lab.html"))}#kind=cross&text=${text}`);
    await until(page, "an answer", (words) => document.title.endsWith(words), wanted.text);
    console.log(`     the first answer after ${((performance.now() - start) / 1000).toFixed(2)} s`);
    const message = () => page.$eval("#live-message", (element) => element.textContent);
    check((await message()).includes(`\u201c${wanted.translation}\u201d`), await message());
    await press(page, "zero-1-1");
    await until(page, "a closed head", () => document.getElementById("reopen-cross-1-1") !== null);
    check(!(await message()).includes("All heads are enabled"), await message());
    await press(page, "reopen-all");
    await until(page, "an open head", () =>
        document.getElementById("live-message").textContent.includes("All heads are enabled"),
    );
    await page.close();
});

await test("firefox_reports_nothing", async () => {
    equal(problems.join("\n"), "", "the console");
});

await browser.close();
finish("test_firefox");
