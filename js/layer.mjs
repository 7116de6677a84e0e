// SPDX-License-Identifier: MIT
// Multi-head attention as a layer: projections, heads, output projection.
import { load } from './load.mjs';
import { extents, optionRecord } from './attention.mjs';
import { Owned, Scope, counted, float } from './scope.mjs';

const STORED = { f32: 0, f16: 1, bf16: 2, i8: 4 };
const ROPE = { halves: 1, neighbours: 2 };

function choice(table, value, name, none) {
    if (value === undefined || value === null)
        return none;
    if (!(value in table))
        throw new RangeError(`${name} is ${value}: one of ${Object.keys(table).join(', ')}`);
    return table[value];
}

export class Layer extends Owned {
    /** A layer from matrices [outputs, inputs], as PyTorch's Linear has them. */
    static async create(config, weights) {
        const host = await load('libmha');
        const c = extents({ keyWidth: config.E, ...config },
                          ['E', 'H', 'G', 'keyWidth', 'valueWidth', 'D'],
                          { G: 'H', valueWidth: 'keyWidth', D: 'E' });
        const D = config.D === undefined ? Math.floor(c.E / c.H) : c.D;
        return Scope.run(host, (scope) => {
            const { E, H, G, keyWidth, valueWidth } = c;
            const bias = (name, count) =>
                weights[name] ? scope.array(counted(weights[name], count, name)) : 0;
            const status = scope.bytes(4);
            const pointer = host.exports.mhajs_layer_create(scope.record([
                E, H, G, D, keyWidth, valueWidth,
                choice(STORED, config.stored, 'stored', 0),
                choice(ROPE, config.rope?.pairs, 'rope.pairs', 0), float(config.rope?.base ?? 0),
                scope.array(counted(weights.q, H * D * E, 'q')),
                scope.array(counted(weights.k, G * D * keyWidth, 'k')),
                scope.array(counted(weights.v, G * D * valueWidth, 'v')),
                scope.array(counted(weights.o, E * H * D, 'o')),
                bias('qBias', H * D), bias('kBias', G * D), bias('vBias', G * D), bias('oBias', E),
                ...scope.message()]), status);
            scope.check(scope.int(status));
            return new Layer(host, pointer, { ...c, D });
        });
    }

    constructor(host, pointer, config) {
        super(host, pointer, 'mha_layer_free');
        this.config = config;
    }

    /** Y [B, L, E] of X [B, L, E]; with a key input [B, S, keyWidth], cross-attention. */
    run(query, shape, options = {}) {
        const { E, H, keyWidth, valueWidth } = this.config;
        const { B, L, S } = extents({ B: 1, ...shape }, ['B', 'L', 'S'], { S: 'L' });
        const { key, value } = options;
        if (!key && S !== L)
            throw new RangeError(`S is ${S}, but without options.key the keys are the L = ${L} rows`);
        return Scope.run(this.host, (scope) => {
            const output = scope.bytes(4 * B * L * E);
            const { record, read } = optionRecord(scope, options, { B, H, L, S });
            scope.check(this.host.exports.mhajs_layer_run(this.pointer, scope.record([
                B, L, key ? S : 0,
                scope.array(counted(query, B * L * E, 'query')),
                key ? scope.array(counted(key, B * S * keyWidth, 'key')) : 0,
                value ? scope.array(counted(value, B * S * valueWidth, 'value')) : 0,
                output, ...record])));
            return { output: scope.copyFloats(output, B * L * E), ...read() };
        });
    }
}
