// SPDX-License-Identifier: MIT
// node test_example.mjs PACKAGE MODEL PLAYWRIGHT BROWSER: the example page of the package in a
// browser, from a server of this script. MODEL is a folder with an encoder.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, model, playwright, browserPath] = process.argv.slice(2).map((path) => resolve(path));
const TYPES = { html: 'text/html', mjs: 'text/javascript', wasm: 'application/wasm' };
let passed = 0, failed = 0;

function check(truth, what) {
    console.log(`${truth ? 'ok  ' : 'FAIL'} ${what}`);
    truth ? passed++ : failed++;
}

const server = createServer(async (request, answer) => {
    const path = new URL(request.url, 'http://x').pathname;
    const file = path.startsWith('/model/') ? join(model, path.slice(7)) : join(folder, path);
    try {
        const bytes = await readFile(file);
        answer.writeHead(200, { 'Content-Type': TYPES[path.split('.').at(-1)] ?? 'application/octet-stream' });
        answer.end(bytes);
    } catch {
        answer.writeHead(404).end();
    }
});
const lines = (await readFile(join(folder, 'example.html'), 'utf8')).trimEnd().split('\n').length;
check(lines <= 30, `the example has at most 30 lines: ${lines}`);
await new Promise((done) => { server.listen(0, '127.0.0.1', done); });

const { chromium } = await import(pathToFileURL(join(playwright, 'index.mjs')));
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
const page = await browser.newPage(), errors = [];
page.on('pageerror', (error) => errors.push(error.message));
await page.goto(`http://127.0.0.1:${server.address().port}/example.html?model=model`);
await page.waitForSelector('canvas', { timeout: 600000 }).catch(() => {});
const heads = await page.locator('canvas').count();
check(heads > 1, `${heads} heads are drawn`);
const size = () => page.evaluate(() => document.querySelector('canvas')?.width);
const before = await size();
const painted = await page.evaluate(() => {
    const canvas = document.querySelector('canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return Array.from(data).filter((x, n) => n % 4 === 3 && x > 0).length;
});
check(painted >= before, `${painted} cells of the first head are painted`);
await page.fill('#text', 'The cat sat on the mat because it was very, very tired.');
check(await size() > before, 'typing draws again');
check(errors.length === 0, `no errors ${errors.join('; ')}`);
await browser.close();
server.close();
console.log(`test_example: ${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 ? 1 : 0);
