// SPDX-License-Identifier: MIT
// Whole models: opened from their files, they encode, generate, and show their heads.
import { filesOf } from './files.mjs';
import { load } from './load.mjs';
import { Owned, Scope, counted, float } from './scope.mjs';
import { Tokenizer } from './tokenizer.mjs';

const STORAGE = { file: 0, f32: 1, f16: 2, bf16: 3, i8: 4, q8: 5, q4: 6 };
const POOLING = { model: 0, mean: 1, first: 2, last: 3, max: 4 };
const KINDS = ['encoder', 'decoder', 'encoder-decoder', 'image-encoder'];
const ATTENTIONS = ['encoder', 'decoder', 'cross'];
const RESULT = 28; // bytes of an mhajs_result

function choice(table, value, name) {
    if (!(value in table))
        throw new RangeError(`${name} is ${value}: one of ${Object.keys(table).join(', ')}`);
    return table[value];
}

export class Model extends Owned {
    #tokenizers = new Map();

    static async open(source, { storage = 'file' } = {}) {
        const number = choice(STORAGE, storage, 'storage');
        const host = await load('libmha_model');
        const { files, name } = await filesOf(source);
        return host.withFiles(files, (folder) => Scope.run(host, (scope) => {
            const status = scope.bytes(4);
            const [path] = scope.text(name ? `${folder}/${name}` : folder);
            const pointer = host.exports.mhajs_model_open(path, number, ...scope.message(), status);
            scope.check(scope.int(status));
            return new Model(host, pointer);
        }));
    }

    constructor(host, pointer) {
        super(host, pointer, 'mha_model_free');
        this.info = Object.freeze(Scope.run(host, (scope) => {
            const at = scope.bytes(4 * 16);
            scope.check(host.exports.mhajs_model_info_get(pointer, at));
            const [family, kind, encoder, decoder, cross, width, inner, heads, keyHeads, headWidth,
                vocabulary, positions, hasLogits, labels, memoryBytes] = scope.copyInts(at, 15);
            return {
                family: host.text(family), kind: KINDS[kind], layers: { encoder, decoder, cross },
                width, inner, heads, keyHeads, headWidth, vocabulary, positions,
                hasLogits: !!hasLogits, labels, memoryBytes: memoryBytes >>> 0,
                parameters: scope.copyFloats(at + 60, 1)[0],
            };
        }));
    }

    #tokenizerOf(name) {
        const pointer = this.host.exports[name](this.pointer);
        if (pointer && !this.#tokenizers.has(name))
            this.#tokenizers.set(name, new Tokenizer(this.host, pointer, this));
        return this.#tokenizers.get(name) ?? null;
    }

    get tokenizer() { return this.#tokenizerOf('mha_model_tokenizer'); }
    get targetTokenizer() { return this.#tokenizerOf('mha_model_target_tokenizer'); }

    /** The model in words: a table, and a drawing of one layer. */
    describe() {
        return Scope.run(this.host, (scope) => {
            const size = this.host.exports.mha_model_describe(this.pointer, 0, 0) + 1;
            const text = scope.bytes(size);
            this.host.exports.mha_model_describe(this.pointer, text, size);
            return this.host.text(text);
        });
    }

    /** The heads of one attention; -1 if there is none. */
    heads(kind, layer) {
        return this.host.exports.mha_model_heads(this.pointer, ATTENTIONS.indexOf(kind), layer);
    }

    // Pointers to factors of heads, [layers][H] for each kind of attention.
    #gates(scope, gates = {}) {
        return ATTENTIONS.map((kind) => {
            let count = 0;
            for (let layer = 0; layer < this.info.layers[kind]; layer++)
                count += this.heads(kind, layer);
            return gates[kind] ? scope.array(counted(gates[kind], count, `gates.${kind}`)) : 0;
        });
    }

    /** One vector per text. */
    encode(texts, { pooling = 'model', normalize, longest = 0, gates } = {}) {
        const list = typeof texts === 'string' ? [texts] : texts, { width } = this.info;
        return Scope.run(this.host, (scope) => {
            const vectors = scope.bytes(4 * list.length * width);
            scope.check(this.host.exports.mhajs_model_encode(this.pointer, scope.record([
                scope.texts(list), list.length, choice(POOLING, pooling, 'pooling'),
                normalize === undefined ? 0 : normalize ? 1 : -1, longest, vectors,
                ...this.#gates(scope, gates), ...scope.message()])));
            return list.map((_, n) => scope.copyFloats(vectors + 4 * n * width, width));
        });
    }

    /** One pass over one sequence: hidden states, logits, labels, and the weights of an attention. */
    run({ ids, sourceIds, segments }, want = {}) {
        const { width, vocabulary, labels } = this.info;
        const rows = ids?.length ?? 0, sources = sourceIds?.length ?? 0;
        return Scope.run(this.host, (scope) => {
            const { weights } = want, sizes = {};
            const take = (name, count) => (sizes[name] = [scope.bytes(4 * count), count])[0];
            const kind = weights ? ATTENTIONS.indexOf(weights.kind) : 0, layer = weights?.layer ?? 0;
            const heads = weights ? this.heads(weights.kind, layer) : 0;
            if (weights && heads < 0)
                throw new RangeError(`the model has no ${weights.kind} attention in layer ${layer}`);
            const keys = kind === 2 || (kind === 0 && sources) ? sources : rows;
            const queries = kind === 0 ? keys : rows;
            scope.check(this.host.exports.mhajs_model_run(this.pointer, scope.record([
                scope.ints(ids, 'ids'), rows, scope.ints(sourceIds, 'sourceIds'), sources,
                scope.ints(segments, 'segments'),
                want.hidden ? take('hidden', rows * width) : 0,
                want.logits ? take('logits', rows * vocabulary) : 0,
                want.sourceHidden ? take('sourceHidden', sources * width) : 0,
                want.labels ? take('labels', labels) : 0,
                kind, layer, heads, weights ? take('weights', heads * queries * keys) : 0,
                ...this.#gates(scope, want.gates), ...scope.message()])));
            const results = Object.fromEntries(Object.entries(sizes).map(
                ([name, [pointer, count]]) => [name, scope.copyFloats(pointer, count)]));
            return weights ? { ...results, weightsShape: [heads, queries, keys] } : results;
        });
    }

    /** Continues texts, or translates them. */
    generate(texts, options = {}) {
        const list = typeof texts === 'string' ? [texts] : texts;
        if (!this.tokenizer)
            throw new Error('this model has no tokenizer');
        const prompts = list.map((text) => this.tokenizer.encode(text, { marks: true }).ids);
        const starts = [0];
        for (const prompt of prompts)
            starts.push(starts.at(-1) + prompt.length);
        const ids = new Int32Array(starts.at(-1));
        prompts.forEach((prompt, n) => ids.set(prompt, starts[n]));
        return Scope.run(this.host, (scope) => {
            const o = options, stops = o.stops ?? [], status = scope.bytes(4);
            const results = this.host.exports.mhajs_model_generate(this.pointer, scope.record([
                scope.longs(starts), scope.array(ids), list.length, o.most ?? 0, o.beams ?? 0,
                float(o.lengthPenalty ?? 0), float(o.temperature ?? 0), float(o.topP ?? 0),
                float(o.minP ?? 0), float(o.repetitionPenalty ?? 0), o.topK ?? 0, (o.seed ?? 0) | 0,
                scope.texts(stops), stops.length, ...this.#gates(scope, o.gates),
                ...scope.message()]), status);
            scope.check(scope.int(status));
            const made = list.map((_, n) => this.#result(scope, results + RESULT * n));
            this.host.exports.mhajs_results_free(results, list.length);
            return made;
        });
    }

    #result(scope, at) {
        const [text, length, ids, count, ended] = scope.copyInts(at, 5);
        const [logProbability, confidence] = scope.copyFloats(at + 20, 2);
        return { text: this.host.text(text, length) ?? '', ids: scope.copyInts(ids, count),
                 ended: !!ended, logProbability, confidence };
    }
}
