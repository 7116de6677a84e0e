// SPDX-License-Identifier: MIT
// node peers.mjs PACKAGE MODULES FILES MINILM: libmha beside ONNX Runtime and transformers.js, all in
// WebAssembly with one thread, in one run.
//
//      PACKAGE   the folder of this package with its modules
//      MODULES   a folder of node_modules with onnxruntime-web and @huggingface/transformers
//      FILES     what "python -m peers.onnx_web FILES" has written
//      MINILM    the folder of MiniLM, as libmha opens it
//
// Rounds are interleaved. A time is CPU time of the process, the median of all rounds; a ratio is the
// median of the ratios of single rounds. Results are compared before anything is measured.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packageFolder, modules, files, minilm] = process.argv.slice(2).map((path) => resolve(path));
const ROUNDS = Number(process.env.ROUNDS ?? 30);
const SENTENCE = 'The quick brown fox jumps over the lazy dog while seven wizards box with a liquor jug.';

const mha = await import(pathToFileURL(`${packageFolder}/index.mjs`));
const ort = await import(pathToFileURL(`${modules}/onnxruntime-web/dist/ort.wasm.bundle.min.mjs`));
ort.env.wasm.numThreads = 1;

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

function random(count, seed) {
    let s = seed;
    return Float32Array.from({ length: count }, () => {
        s = (Math.imul(s, 1103515245) + 12345) & 0x7fffffff;
        return s / 0x40000000 - 1;
    });
}

function largestDifference(a, b) {
    if (a.length !== b.length)
        throw new Error(`${a.length} numbers beside ${b.length}`);
    return a.reduce((most, x, n) => Math.max(most, Math.abs(x - b[n])), 0);
}

async function cpuTime(run) {
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
}

/** Prints a line for each contender; the first is ours. `contenders`: { name: function }. */
async function compare(title, contenders, tolerance) {
    const names = Object.keys(contenders), times = Object.fromEntries(names.map((n) => [n, []]));
    const ours = await contenders[names[0]]();
    for (const name of names.slice(1)) {
        const apart = largestDifference(ours, await contenders[name]());
        if (!(apart <= tolerance))
            throw new Error(`${title}: ${name} is ${apart} apart`);
    }
    for (let n = 0; n < ROUNDS + 3; n++) // the first ones are compiled on the way
        for (const name of names) {
            const time = await cpuTime(contenders[name]);
            if (n >= 3)
                times[name].push(time);
        }
    for (const name of names) {
        const ratio = median(times[name].map((time, n) => time / times[names[0]][n]));
        console.log(`${title.padEnd(24)} ${name.padEnd(24)} ${median(times[name]).toFixed(2).padStart(8)} ms`
            + (name === names[0] ? '' : `   ours is ${ratio.toFixed(2)} x as fast`));
    }
}

async function attentionCase() {
    const H = 12, L = 512, D = 64, shape = [1, L, H * D];
    const [q, k, v] = [1, 2, 3].map((seed) => random(H * L * D, seed));
    const session = await ort.InferenceSession.create(await readFile(`${files}/attention.onnx`));
    const feeds = { q: new ort.Tensor(q, shape), k: new ort.Tensor(k, shape), v: new ort.Tensor(v, shape) };
    await compare('attention b1h12l512d64', {
        libmha: async () => (await mha.attention(q, k, v, { H, L, D }, { layout: 'blhd' })).output,
        'onnxruntime-web': async () => (await session.run(feeds)).output.data,
    }, 1e-5);
}

function meanVector(hidden, width) {
    const rows = hidden.length / width, mean = new Float32Array(width);
    hidden.forEach((x, n) => { mean[n % width] += x / rows; });
    const length = Math.hypot(...mean);
    return mean.map((x) => x / length);
}

/** transformers.js as browsers get it, with the ONNX Runtime of this script: under node it would take
 * one of machine code. */
async function transformersModel() {
    globalThis[Symbol.for('onnxruntime')] = ort;
    Object.defineProperty(process, 'release', { value: { name: 'hidden' } });
    const web = await import(
        pathToFileURL(`${modules}/@huggingface/transformers/dist/transformers.web.js`));
    delete ort.env.wasm.wasmPaths; // it would fetch the module of ONNX Runtime from a server
    const server = createServer(async ({ url }, answer) => { // it fetches what it opens
        const bytes = await readFile(`${files}${url}`).catch(() => null);
        answer.writeHead(bytes ? 200 : 404, { 'Content-Length': bytes?.length ?? 0 }).end(bytes);
    });
    await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
    Object.assign(web.env, { allowRemoteModels: false, allowLocalModels: true, useBrowserCache: false,
                             localModelPath: `http://127.0.0.1:${server.address().port}/` });
    const read = async (name) => JSON.parse(await readFile(`${files}/minilm/${name}`, 'utf8'));
    const tokenizer = new web.BertTokenizer(await read('tokenizer.json'), await read('tokenizer_config.json'));
    const model = await web.AutoModel.from_pretrained('minilm', { dtype: 'fp32', device: 'auto' });
    return async (text) => (await model(await tokenizer(text))).last_hidden_state.data;
}

async function minilmCase() {
    const model = await mha.Model.open(minilm), { width } = model.info;
    const session = await ort.InferenceSession.create(await readFile(`${files}/minilm/onnx/model.onnx`));
    const contenders = {
        libmha: () => model.encode(SENTENCE)[0],
        'onnxruntime-web': async () => {
            const { ids } = model.tokenizer.encode(SENTENCE), shape = [1, ids.length];
            const longs = (value) => new ort.Tensor('int64', BigInt64Array.from(ids, value), shape);
            const { last_hidden_state: hidden } = await session.run({
                input_ids: longs((id) => BigInt(id)), token_type_ids: longs(() => 0n),
                attention_mask: longs(() => 1n) });
            return meanVector(hidden.data, width);
        },
    };
    try {
        const hidden = await transformersModel();
        const run = async () => meanVector(await hidden(SENTENCE), width);
        await run();
        contenders['transformers.js'] = run;
    } catch (error) {
        console.log(`without transformers.js: ${error.message}`);
    }
    await compare('MiniLM, one sentence', contenders, 1e-5);
}

await attentionCase();
await minilmCase();
process.exit(0); // the server is still there
