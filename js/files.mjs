// SPDX-License-Identifier: MIT
// The files of a model, as { name: bytes }: given, fetched, or read by node.

/** Names that a folder in Hugging Face's form may have. */
const KNOWN = [
    'config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json',
    'special_tokens_map.json', 'generation_config.json', 'vocab.txt', 'vocab.json', 'merges.txt',
    'tokenizer.model', 'source.spm', 'target.spm', 'modules.json', 'sentence_bert_config.json',
    'config_sentence_transformers.json', '1_Pooling/config.json',
];
const WANTED = /\.(json|txt|safetensors|gguf|bin|model|spm|tiktoken|bpe)$/;

const asBytes = (value) =>
    (value instanceof Uint8Array ? value
        : ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
        : value instanceof ArrayBuffer ? new Uint8Array(value)
        : new TextEncoder().encode(value));

async function fetchFile(url, optional) {
    const answer = await fetch(url);
    if (answer.ok)
        return new Uint8Array(await answer.arrayBuffer());
    if (optional)
        return null;
    throw new Error(`libmha: ${url} cannot be loaded (${answer.status} ${answer.statusText})`);
}

async function fetchFolder(url) {
    const base = new URL(url.href.endsWith('/') ? url.href : `${url.href}/`), files = {};
    await Promise.all(KNOWN.map(async (name) => {
        const bytes = await fetchFile(new URL(name, base), true);
        if (bytes)
            files[name] = bytes;
    }));
    return { files, name: '' };
}

async function readFolder(fs, folder, under, files) {
    for (const entry of await fs.readdir(`${folder}/${under}`, { withFileTypes: true })) {
        const name = `${under}${entry.name}`;
        if (entry.isDirectory() && !under)
            await readFolder(fs, folder, `${name}/`, files);
        else if (!entry.isDirectory() && WANTED.test(name))
            files[name] = await fs.readFile(`${folder}/${name}`);
    }
    return files;
}

async function readPath(path) {
    const fs = await import('node:fs/promises');
    if ((await fs.stat(path)).isDirectory())
        return { files: await readFolder(fs, path, '', {}), name: '' };
    const name = path.replace(/^.*[\\/]/, '');
    return { files: { [name]: await fs.readFile(path) }, name };
}

/**
 * The files of `source` and, if it is a single file, its name. A path of node, a URL (one that ends
 * with the name of a file, else of a folder), or an object { name: bytes or text }.
 */
export async function filesOf(source) {
    if (source instanceof URL && source.protocol === 'file:') {
        const { fileURLToPath } = await import('node:url');
        return readPath(fileURLToPath(source));
    }
    if (typeof source === 'string' && !/^https?:/.test(source) && typeof process === 'object')
        return readPath(source);
    if (source instanceof URL || typeof source === 'string') {
        const url = new URL(source, globalThis.location?.href);
        const name = url.pathname.replace(/^.*\//, '');
        return WANTED.test(name) ? { files: { [name]: await fetchFile(url) }, name } : fetchFolder(url);
    }
    const files = {};
    for (const [name, value] of Object.entries(source))
        files[name.replace(/^\/+/, '')] = asBytes(value);
    const names = Object.keys(files);
    return { files, name: names.length === 1 ? names[0] : '' };
}
