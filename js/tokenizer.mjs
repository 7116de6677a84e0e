// SPDX-License-Identifier: MIT
// Text to token ids and back.
import { filesOf } from './files.mjs';
import { load } from './load.mjs';
import { Owned, Scope } from './scope.mjs';

const MARKS = 1, PLAIN = 2, SKIP_MARKS = 4;
const SPECIAL = 1, UNKNOWN = 2, CONTINUES = 4;

/** For each byte of the UTF-8 of `text`, the index of its character in the string. */
function indices(text) {
    const places = [];
    let at = 0;
    for (const character of text) {
        const code = character.codePointAt(0);
        const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        for (let n = 0; n < bytes; n++)
            places.push(at);
        at += character.length;
    }
    places.push(at);
    return places;
}

export class Tokenizer extends Owned {
    #model; // keeps the model of a borrowed tokenizer alive

    static async open(source) {
        const host = await load('libmha_model');
        const { files, name } = await filesOf(source);
        return host.withFiles(files, (folder) => Scope.run(host, (scope) => {
            const status = scope.bytes(4);
            const [path] = scope.text(name ? `${folder}/${name}` : folder);
            const pointer = host.exports.mhajs_tokenizer_open(path, ...scope.message(), status);
            scope.check(scope.int(status));
            return new Tokenizer(host, pointer);
        }));
    }

    constructor(host, pointer, model) {
        super(host, pointer, model ? null : 'mha_tokenizer_free');
        this.#model = model;
    }

    get pointer() {
        this.#model?.pointer; // throws if the model has been freed
        return super.pointer;
    }

    get size() { return this.host.exports.mha_tokenizer_size(this.pointer); }
    get kind() { return this.host.text(this.host.exports.mha_tokenizer_kind(this.pointer)); }

    /** The tokens of a text, or of a pair of texts, with their places in the strings. */
    encode(text, { pair, marks = true, plain = false } = {}) {
        const { host } = this;
        return Scope.run(host, (scope) => {
            const counts = scope.bytes(8);
            const second = pair === undefined ? [0, 0] : scope.text(pair);
            const numbers = host.exports.mhajs_tokenizer_encode(
                this.pointer, ...scope.text(text), ...second,
                (marks ? MARKS : 0) | (plain ? PLAIN : 0), counts, counts + 4);
            scope.check(scope.int(counts + 4));
            const all = scope.copyInts(numbers, 5 * scope.int(counts));
            host.exports.free(numbers);
            const places = [indices(text), pair === undefined ? [] : indices(pair)];
            const tokens = [];
            for (let n = 0; n < all.length; n += 5) {
                const [id, flags, segment, begin, end] = all.subarray(n, n + 5);
                const place = places[segment] ?? places[0];
                tokens.push({
                    id, segment, begin: place[begin] ?? 0, end: place[end] ?? 0, piece: this.piece(id),
                    special: !!(flags & SPECIAL), unknown: !!(flags & UNKNOWN),
                    continues: !!(flags & CONTINUES),
                });
            }
            return { ids: Int32Array.from(tokens, (t) => t.id), tokens };
        });
    }

    decode(ids, { skipMarks = true } = {}) {
        const { host } = this;
        return Scope.run(host, (scope) => {
            const counts = scope.bytes(8);
            const pointer = host.exports.mhajs_tokenizer_decode(
                this.pointer, scope.ints(ids, 'ids'), ids.length, skipMarks ? SKIP_MARKS : 0,
                counts, counts + 4);
            scope.check(scope.int(counts + 4));
            const text = host.text(pointer, scope.int(counts));
            host.exports.mha_text_free(pointer);
            return text;
        });
    }

    /** The entry of the vocabulary as it is stored; null for no such id. */
    piece(id) { return this.host.text(this.host.exports.mha_tokenizer_piece(this.pointer, id)); }

    /** The id of an entry; -1 if there is none. */
    find(piece) {
        return Scope.run(this.host, (scope) =>
            this.host.exports.mha_tokenizer_find(this.pointer, scope.text(piece)[0]));
    }
}
