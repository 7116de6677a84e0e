// SPDX-License-Identifier: MIT
// The modules of WebAssembly: from the files beside this script, or from bytes that were given.
import { Host } from './host.mjs';

const given = new Map(); // of useModule()
const loaded = new Map();

const isNode = typeof process === 'object' && !!process.versions?.node;

/** The bytes (or compiled module) of `name`, instead of the file beside this script. */
export function useModule(name, source) {
    given.set(name, source);
    loaded.delete(name);
}

async function compile(name) {
    const source = given.get(name) ?? new URL(`./${name}.wasm`, import.meta.url);
    if (source instanceof WebAssembly.Module)
        return source;
    if (!(source instanceof URL))
        return WebAssembly.compile(source);
    if (source.protocol === 'file:' && isNode) {
        const { readFile } = await import('node:fs/promises');
        return WebAssembly.compile(await readFile(source));
    }
    const answer = await fetch(source);
    if (!answer.ok)
        throw new Error(`libmha: ${source} cannot be loaded (${answer.status} ${answer.statusText})`);
    return WebAssembly.compile(await answer.arrayBuffer());
}

/** The running module `name`, "libmha" or "libmha_model"; made once. */
export function load(name) {
    if (!loaded.has(name)) {
        const host = compile(name).then((module) => new Host(module));
        host.catch(() => loaded.delete(name)); // another attempt may succeed
        loaded.set(name, host);
    }
    return loaded.get(name);
}
