// SPDX-License-Identifier: MIT
// Memory of one call: everything that is taken is freed at its end. And what all objects of this
// package share: errors, and memory that is freed when an object is no longer in use.

const MESSAGE = 512;

/** An error of the library. `code` is the name of its status, such as "MHA_ERR_SHAPE". */
export class MhaError extends Error {
    constructor(status, code, message) {
        super(message);
        this.name = 'MhaError';
        this.status = status;
        this.code = code;
    }
}

/** A number that is stored as f32, in Scope.record(). */
export const float = (value) => ({ float: value });

export class Scope {
    #taken = [];

    constructor(host) {
        this.host = host;
    }

    /** Calls `use` with a scope, and frees its memory. */
    static run(host, use) {
        const scope = new Scope(host);
        try {
            return use(scope);
        } finally {
            for (const pointer of scope.#taken)
                host.exports.free(pointer);
        }
    }

    bytes(size) {
        const pointer = this.host.exports.malloc(Math.max(size, 1));
        if (!pointer)
            throw new MhaError(-18, 'MHA_ERR_MEMORY', `no memory for ${size} bytes`);
        this.#taken.push(pointer);
        return pointer;
    }

    /** A copy of a typed array; 0 for none. */
    array(values) {
        if (values === undefined || values === null)
            return 0;
        const pointer = this.bytes(values.byteLength);
        const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
        this.host.u8.set(bytes, pointer);
        return pointer;
    }

    floats(values, name) { return this.array(typed(values, Float32Array, name)); }
    ints(values, name) { return this.array(typed(values, Int32Array, name)); }

    longs(values) {
        return this.array(values && BigInt64Array.from(values, (value) => BigInt(value)));
    }

    /** UTF-8 with a zero byte; the pointer and the length without it. */
    text(text) {
        const bytes = new TextEncoder().encode(`${text}\0`);
        return [this.array(bytes), bytes.length - 1];
    }

    texts(list) {
        return list.length ? this.record(list.map((text) => this.text(text)[0])) : 0;
    }

    /** Numbers of 4 bytes, one after another; those of float() as f32. */
    record(values) {
        const pointer = this.bytes(4 * values.length), view = this.host.view;
        values.forEach((value, n) => {
            if (typeof value === 'object')
                view.setFloat32(pointer + 4 * n, value.float, true);
            else
                view.setInt32(pointer + 4 * n, Number(value), true);
        });
        return pointer;
    }

    /** The two fields that end every record: where a message goes. */
    message() {
        this.told = this.bytes(MESSAGE);
        this.host.u8[this.told] = 0;
        return [this.told, MESSAGE];
    }

    /** Throws if `status` is an error, with the message of the call if it has one. */
    check(status) {
        if (status === 0)
            return;
        const all = this.host.text(this.host.exports.mha_status_string(status));
        const [code, ...rest] = all.split(': ');
        throw new MhaError(status, code, (this.told && this.host.text(this.told)) || rest.join(': '));
    }

    // Copies of results.
    int(pointer) { return this.host.view.getInt32(pointer, true); }
    copyFloats(pointer, count) {
        return new Float32Array(this.host.exports.memory.buffer.slice(pointer, pointer + 4 * count));
    }
    copyInts(pointer, count) {
        return new Int32Array(this.host.exports.memory.buffer.slice(pointer, pointer + 4 * count));
    }
}

/** `values` as they are if they have this type, else converted; arrays of numbers are allowed. */
export function typed(values, Type, name) {
    if (values === undefined || values === null || values instanceof Type)
        return values;
    if (Array.isArray(values) || ArrayBuffer.isView(values))
        return Type.from(values);
    throw new TypeError(`${name} is not an array of numbers`);
}

/** Throws unless `values` has as many numbers as the shape says. */
export function counted(values, count, name) {
    const numbers = typed(values, Float32Array, name);
    if (!numbers)
        throw new TypeError(`${name} is missing`);
    if (numbers.length !== count)
        throw new RangeError(`${name} has ${numbers.length} numbers, the shape says ${count}`);
    return numbers;
}

const registry = new FinalizationRegistry(({ host, free, pointer }) => host.exports[free](pointer));

/** An object of the library: freed by free(), or some time after it is no longer in use. */
export class Owned {
    #pointer;
    #free;

    constructor(host, pointer, free) {
        this.host = host;
        this.#pointer = pointer;
        this.#free = free;
        if (free)
            registry.register(this, { host, free, pointer }, this);
    }

    get pointer() {
        if (!this.#pointer)
            throw new MhaError(-1, 'MHA_ERR_NULL', `this ${this.constructor.name} has been freed`);
        return this.#pointer;
    }

    free() {
        if (this.#pointer && this.#free) {
            registry.unregister(this);
            this.host.exports[this.#free](this.#pointer);
        }
        this.#pointer = 0;
    }

    [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { this.free(); }
}
