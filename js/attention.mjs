// SPDX-License-Identifier: MIT
// The attention operator. Its options are those of mhajs_options in src/mhajs.h, in this order.
import { load } from './load.mjs';
import { Scope, counted, float, typed } from './scope.mjs';

const CAUSAL = 1, WINDOW = 2;
const POSITIONS = { 'top-left': 1, 'bottom-right': 2 };

function whole(value, name) {
    if (!Number.isInteger(value) || value < 0 || value > 0x7fffffff)
        throw new RangeError(`${name} is ${value}, not a whole number from 0 to 2147483647`);
    return value;
}

/** Fields `names` of `shape`, checked; `defaults` name the fields they are equal to if missing. */
export function extents(shape, names, defaults = {}) {
    const got = {};
    for (const name of names)
        got[name] = whole(shape[name] ?? got[defaults[name]], name);
    return got;
}

/** A mask or bias with the axes (b, h, i, j), of which b, h and i may be 1: pointer and strides. */
function broadcast(scope, values, Type, name, { B, H, L, S }) {
    if (values === undefined || values === null)
        return [0, 0, 0, 0];
    const { data, shape = [L, S] } = ArrayBuffer.isView(values) || Array.isArray(values)
        ? { data: values } : values;
    const full = [B, H, L, S], axes = [...Array(4 - shape.length).fill(1), ...shape];
    if (shape.length > 4 || axes.some((n, a) => n !== full[a] && (n !== 1 || a === 3)))
        throw new RangeError(`${name} has the shape [${shape}], which does not fit [${full}]`);
    const numbers = typed(data, Type, `${name}.data`);
    if (numbers.length !== axes.reduce((a, b) => a * b))
        throw new RangeError(`${name} has ${numbers.length} numbers for the shape [${shape}]`);
    const strides = [axes[1] * axes[2] * S, axes[2] * S, S];
    return [scope.array(numbers), ...strides.map((s, a) => (axes[a] === 1 ? 0 : s))];
}

function position(value) {
    if (value === undefined || value === null)
        return [0, 0];
    if (Number.isInteger(value))
        return [3, value];
    if (!POSITIONS[value])
        throw new RangeError(`position is ${value}: "top-left", "bottom-right" or a number`);
    return [POSITIONS[value], 0];
}

/** The record of the options of a call, and the memory for what it returns beside its output. */
export function optionRecord(scope, options, shape) {
    const { B, H, L, S } = shape;
    const [left, right] = options.window ?? [0, 0];
    const results = {
        lse: options.returnLse ? scope.bytes(4 * B * H * L) : 0,
        weights: options.returnWeights ? scope.bytes(4 * B * H * L * S) : 0,
    };
    const gates = options.gates && counted(options.gates, H, 'gates');
    if (options.keyLengths && options.keyLengths.length !== B)
        throw new RangeError(`keyLengths has ${options.keyLengths.length} numbers, not B = ${B}`);
    const record = [
        (options.causal ? CAUSAL : 0) | (options.window ? WINDOW : 0),
        float(options.scale ?? 0), float(options.softcap ?? 0),
        ...position(options.position), left ?? -1, right ?? -1,
        ...broadcast(scope, options.mask, Uint8Array, 'mask', shape),
        ...broadcast(scope, options.bias, Float32Array, 'bias', shape),
        scope.longs(options.keyLengths), scope.array(gates), results.lse, results.weights,
        ...scope.message(),
    ];
    const read = () => ({
        ...(results.lse && { lse: scope.copyFloats(results.lse, B * H * L) }),
        ...(results.weights && { weights: scope.copyFloats(results.weights, B * H * L * S) }),
    });
    return { record, read };
}

export async function attention(q, k, v, shape, options = {}) {
    const s = extents({ B: 1, ...shape }, ['B', 'H', 'L', 'D', 'G', 'S', 'Dv'],
                      { G: 'H', S: 'L', Dv: 'D' });
    return run(await load('libmha'), q, k, v, s, options);
}

function run(host, q, k, v, s, options) {
    return Scope.run(host, (scope) => {
        const { B, H, G, L, S, D, Dv } = s;
        const output = scope.bytes(4 * B * H * L * Dv);
        const { record, read } = optionRecord(scope, options, s);
        const layout = options.layout ?? 'bhld';
        if (layout !== 'bhld' && layout !== 'blhd')
            throw new RangeError(`layout is ${layout}: "bhld" or "blhd"`);
        scope.check(host.exports.mhajs_attention(scope.record([
            B, H, G, L, S, D, Dv, layout === 'blhd',
            scope.array(counted(q, B * H * L * D, 'q')),
            scope.array(counted(k, B * G * S * D, 'k')),
            scope.array(counted(v, B * G * S * Dv, 'v')),
            output, ...record])));
        return { output: scope.copyFloats(output, B * H * L * Dv), ...read() };
    });
}
