// SPDX-License-Identifier: MIT
// node --expose-gc test_package.mjs MODEL: the package as a user has it. Attention is compared with
// loops in double precision.
import { readFileSync } from 'node:fs';
import * as library from 'libmha';
import { Layer, MhaError, Model, Tokenizer, attention } from 'libmha';

const modelFolder = process.argv[2];
let passed = 0, failed = 0;

async function test(name, body) {
    try {
        await body();
        passed++;
        console.log(`ok   ${name}`);
    } catch (error) {
        failed++;
        console.log(`FAIL ${name}: ${error.stack}`);
    }
}

function check(truth, what) {
    if (!truth)
        throw new Error(what);
}

async function fails(code, body) {
    try {
        await body();
    } catch (error) {
        check(error instanceof MhaError ? error.code === code : error.name === code,
              `${error.name} ${error.code}: ${error.message}`);
        check(error.message.length > 10, 'the message says nothing');
        return error;
    }
    throw new Error(`${code} was expected`);
}

// What index.d.ts declares: the names of exported values, and of each class those of its members.
function declarations() {
    const types = readFileSync(new URL(import.meta.resolve('libmha').replace(/[^/]*$/, 'index.d.ts')), 'utf8');
    const classes = new Map();
    for (const [, name, body] of types.matchAll(/^export class (\w+)[^{]*\{\n(.*?)^\}/gms))
        classes.set(name, [...body.matchAll(/^    (static |readonly |)(\w+)(?=[(:])/gm)].map(([, kind, member]) =>
            ({ kind: kind.trim(), member })));
    const values = [...types.matchAll(/^export (?:declare )?(?:function|const) (\w+)/gm)].map(([, name]) => name);
    return { classes, values };
}

const without = (names, ...left) => names.filter((name) => !left.includes(name)).sort().join(' ');

await test('every export is declared, and every declaration is there', () => {
    const { classes, values } = declarations();
    check(without(Object.keys(library)) === without([...classes.keys(), ...values]),
          `${Object.keys(library)} but ${[...classes.keys(), ...values]}`);
    for (const [name, members] of classes) {
        const own = Object.getOwnPropertyNames(library[name].prototype);
        const declared = (kind) => members.filter((one) => one.kind === kind).map(({ member }) => member);
        const isMethod = (member) =>
            Object.getOwnPropertyDescriptor(library[name].prototype, member).value !== undefined;
        const [methods, getters] = [own.filter(isMethod), own.filter((member) => !isMethod(member))];
        check(without(methods, 'constructor') === without(declared('')), `methods of ${name}: ${methods}`);
        check(without(getters, 'pointer').split(' ').every((member) => !member || declared('readonly').includes(member)),
              `getters of ${name}: ${getters}`);
        check(without(Object.getOwnPropertyNames(library[name]), 'length', 'name', 'prototype', 'stackTraceLimit',
                      'captureStackTrace') === without(declared('static')), `static functions of ${name}`);
    }
});

function random(count, seed) {
    let s = seed;
    return Float32Array.from({ length: count }, () => {
        s = (Math.imul(s, 1103515245) + 12345) & 0x7fffffff;
        return s / 0x40000000 - 1;
    });
}

/** Weights and outputs of one head by the formula, [L, S] and [L, D]. `sees(i, j)`. */
function head(q, k, v, L, S, D, sees) {
    const output = [], weights = [];
    for (let i = 0; i < L; i++) {
        const scores = Array.from({ length: S }, (_, j) => {
            let sum = 0;
            for (let c = 0; c < D; c++)
                sum += q[i * D + c] * k[j * D + c];
            return sees(i, j) ? sum / Math.sqrt(D) : -Infinity;
        });
        const top = Math.max(...scores), powers = scores.map((s) => Math.exp(s - top));
        const total = powers.reduce((a, b) => a + b);
        weights.push(...powers.map((p) => p / total));
        for (let c = 0; c < D; c++)
            output.push(powers.reduce((sum, p, j) => sum + p * v[j * D + c], 0) / total);
    }
    return { output, weights };
}

function near(a, b, bound, what) {
    check(a.length === b.length, `${what}: ${a.length} numbers, not ${b.length}`);
    a.forEach((x, n) => check(Math.abs(x - b[n]) <= bound, `${what}: ${x} at ${n}, not ${b[n]}`));
}

await test('attention', async () => {
    const H = 4, G = 2, L = 7, S = 11, D = 8;
    const q = random(H * L * D, 1), k = random(G * S * D, 2), v = random(G * S * D, 3);
    const mask = Uint8Array.from({ length: L * S }, (_, n) => (n % S === 0 || n % 5 ? 1 : 0));
    const cases = [
        [{}, () => true],
        [{ causal: true, position: 'bottom-right' }, (i, j) => j <= i + S - L],
        [{ window: [2, null], position: 1 }, (i, j) => j >= i + 1 - 2],
        [{ mask }, (i, j) => mask[i * S + j] !== 0],
        [{ keyLengths: [6] }, (i, j) => j < 6],
    ];
    for (const [options, sees] of cases) {
        const got = await attention(q, k, v, { H, G, L, S, D },
                                    { ...options, returnWeights: true, returnLse: true });
        check(got.lse.length === H * L, 'lse');
        for (let h = 0; h < H; h++) {
            const g = h >> 1, part = (x, n, rows, w) => x.subarray(n * rows * w, (n + 1) * rows * w);
            const want = head(part(q, h, L, D), part(k, g, S, D), part(v, g, S, D), L, S, D, sees);
            near(part(got.output, h, L, D), want.output, 1e-6, `${JSON.stringify(options)} output`);
            near(part(got.weights, h, L, S), want.weights, 1e-6, 'weights');
        }
    }
});

await test('layouts give the same bits', async () => {
    const H = 3, L = 40, D = 16, shape = { H, L, D };
    const [q, k, v] = [4, 5, 6].map((seed) => random(H * L * D, seed));
    const turn = (x, from, to) => Float32Array.from(x, (_, n) => {
        const c = n % D, a = Math.floor(n / D) % to, b = Math.floor(n / D / to);
        return x[(a * from + b) * D + c];
    });
    const plain = await attention(q, k, v, shape);
    const sides = await attention(turn(q, L, H), turn(k, L, H), turn(v, L, H), shape, { layout: 'blhd' });
    check(turn(plain.output, L, H).every((x, n) => x === sides.output[n]), 'other numbers');
});

await test('errors', async () => {
    const x = random(64, 1);
    await fails('MHA_ERR_POSITION', () => attention(x.slice(0, 32), x, x, { H: 1, L: 4, S: 8, D: 8 },
                                                    { causal: true }));
    await fails('MHA_ERR_SHAPE', () => attention(x, x, x, { H: 2, G: 4, L: 4, S: 2, D: 8 }));
    await fails('RangeError', () => attention(x, x, x, { H: 2, L: 4, D: 9 }));
    await fails('RangeError', () => attention(x, x, x, { H: -2, L: 4, D: 8 }));
    await fails('TypeError', () => attention(x, null, x, { H: 2, L: 4, D: 8 }));
    await fails('MHA_ERR_FORMAT', () => Model.open({ 'notes.txt': 'hello', 'more.txt': 'there' }));
    await fails('MHA_ERR_FORMAT', () => Tokenizer.open({ 'tokenizer.json': '{ "model": 7' }));
});

await test('a layer is its parts', async () => {
    const E = 12, H = 3, L = 5, D = E / H;
    const eye = Float32Array.from({ length: E * E }, (_, n) => (n % (E + 1) === 0 ? 1 : 0));
    const layer = await Layer.create({ E, H }, { q: eye, k: eye, v: eye, o: eye });
    const x = random(L * E, 9);
    const { output } = layer.run(x, { L }, { causal: true });
    const want = await attention(x, x, x, { H, L, D }, { causal: true, layout: 'blhd' });
    near(output, want.output, 1e-6, 'output');
    layer.free();
    layer.free();
    await fails('MHA_ERR_NULL', () => layer.run(x, { L }));
});

await test('a model translates, and shows its heads', async () => {
    const model = await Model.open(modelFolder);
    check(model.info.kind === 'encoder-decoder' && model.describe().length > 200, 'info');
    const [one] = model.generate('The cat sleeps on the table.', { beams: 4, most: 40 });
    check(one.text === 'Le chat dort sur la table.' && one.ended, one.text);
    check(one.confidence > 0.3 && one.confidence <= 1, `confidence ${one.confidence}`);
    const { ids: sourceIds } = model.tokenizer.encode('The cat sleeps.');
    const { weights, weightsShape: [heads, rows, keys] } =
        model.run({ sourceIds }, { weights: { kind: 'encoder', layer: 0 } });
    check(rows === sourceIds.length && keys === rows, 'shape');
    for (let n = 0; n < heads * rows; n++) {
        const sum = weights.subarray(n * keys, (n + 1) * keys).reduce((a, b) => a + b, 0);
        check(Math.abs(sum - 1) < 1e-5, `row ${n} sums to ${sum}`);
    }
    const count = model.info.layers.encoder * model.info.heads;
    const closed = model.encode('The cat.', { gates: { encoder: new Float32Array(count) } })[0];
    check(closed.some((x, n) => x !== model.encode('The cat.')[0][n]), 'gates change nothing');
    const { tokenizer } = model;
    model.free();
    await fails('MHA_ERR_NULL', () => tokenizer.encode('x'));
});

await test('a tokenizer', async () => {
    const files = { 'tokenizer.json': readFileSync(`${modelFolder}/tokenizer.json`) };
    const tokenizer = await Tokenizer.open(files);
    const text = 'Café: naïve 🐈 cats';
    const { ids, tokens } = tokenizer.encode(text, { marks: false });
    check(ids.length > 3 && tokenizer.size > 1000, 'ids');
    check(text.slice(0, 4) === 'Café' && tokens[0].begin === 0 && tokens.at(-1).end === text.length,
          JSON.stringify(tokens));
    check(tokenizer.find(tokens[0].piece) === tokens[0].id, 'find');
    check(tokenizer.piece(-1) === null, 'piece');
    await fails('MHA_ERR_INDEX', () => tokenizer.decode([1 << 30]));
    tokenizer.free();
});

await test('memory is freed', async () => {
    const E = 256, matrix = random(E * E, 1);
    const weights = { q: matrix, k: matrix, v: matrix, o: matrix };
    const size = async () => {
        const layer = await Layer.create({ E, H: 4 }, weights);
        const bytes = layer.host.exports.memory.buffer.byteLength;
        layer.free();
        return bytes;
    };
    const before = await size();
    for (let n = 0; n < 200; n++)
        await size();
    check(await size() === before, 'free() does not free');
    for (let n = 0; n < 400; n++) { // a gigabyte, if nobody collects it
        await Layer.create({ E, H: 4 }, weights);
        if (n % 20 === 0) {
            globalThis.gc();
            await new Promise((done) => { setTimeout(done, 1); });
        }
    }
    check(await size() < before + (200 << 20), 'the garbage collector frees nothing');
});

console.log(`test_package: ${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 ? 1 : 0);
