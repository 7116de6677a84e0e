// SPDX-License-Identifier: MIT
// What a module of WebAssembly needs around it: memory that grows, the environment variable MHA_ISA,
// and files. Files are those that put() was given: nothing else can be opened, and
// nothing can be written. The numbers of errors and the layout of `struct stat` are emscripten's.
// Pages of "mha view --live" contain this file too, in the script of their Worker.

const E = { ACCES: 2, BADF: 8, INVAL: 28, NODEV: 43, NOENT: 44, NOSYS: 52 };
const FILE = 0o100444, FOLDER = 0o040555;

const isNode = typeof process === 'object' && !!process.versions?.node;

export class Host {
    #files = new Map(); // by path
    #folders = new Set(['/']);
    #open = new Map(); // by descriptor: { bytes, at }
    #text = new TextDecoder();

    constructor(module) {
        const table = { ...this.#memoryCalls(), ...this.#environment(), ...this.#fileCalls() };
        const imports = {};
        for (const { module: from, name } of WebAssembly.Module.imports(module)) {
            const refuse = () => (from === 'env' ? -E.NOSYS : E.NOSYS);
            (imports[from] ??= {})[name] = table[name] ?? refuse;
        }
        this.exports = new WebAssembly.Instance(module, imports).exports;
        this.exports.__wasm_call_ctors();
    }

    // Memory may move when it grows: views are made anew for every use.
    get u8() { return new Uint8Array(this.exports.memory.buffer); }
    get view() { return new DataView(this.exports.memory.buffer); }

    /** The text at `pointer`, up to a zero byte or of `length` bytes. */
    text(pointer, length) {
        if (!pointer)
            return null;
        const bytes = this.u8;
        const end = length === undefined ? bytes.indexOf(0, pointer) : pointer + length;
        return this.#text.decode(bytes.subarray(pointer, end));
    }

    /** Puts files, { name: bytes }, into a new folder and calls `use` with its path. */
    async withFiles(files, use) {
        let folder;
        for (let n = 0; this.#folders.has(folder = `/files${n}`); n++);
        this.#folders.add(folder);
        for (const [name, bytes] of Object.entries(files)) {
            const parts = name.split('/').slice(0, -1);
            for (let n = 1; n <= parts.length; n++)
                this.#folders.add(`${folder}/${parts.slice(0, n).join('/')}`);
            this.#files.set(`${folder}/${name}`, bytes);
        }
        try {
            return await use(folder);
        } finally {
            const inside = (path) => path === folder || path.startsWith(`${folder}/`);
            for (const path of [...this.#files.keys()].filter(inside))
                this.#files.delete(path);
            for (const path of [...this.#folders].filter(inside))
                this.#folders.delete(path);
        }
    }

    #memoryCalls() {
        return {
            emscripten_memcpy_big: (to, from, size) => {
                this.u8.copyWithin(to, from, from + size);
                return to;
            },
            emscripten_resize_heap: (size) => {
                const { memory } = this.exports;
                const missing = (size >>> 0) - memory.buffer.byteLength;
                // A sixth more than is asked for, if there is room: growing often is slow.
                for (const bytes of [missing + memory.buffer.byteLength / 6, missing]) {
                    try {
                        memory.grow(Math.ceil(bytes / 65536));
                        return 1;
                    } catch { /* less, or not at all */ }
                }
                return 0;
            },
        };
    }

    #environment() {
        const isa = isNode ? process.env.MHA_ISA : undefined;
        const entry = isa ? new TextEncoder().encode(`MHA_ISA=${isa}\0`) : new Uint8Array(0);
        return {
            environ_sizes_get: (count, size) => {
                this.view.setUint32(count, entry.length ? 1 : 0, true);
                this.view.setUint32(size, entry.length, true);
                return 0;
            },
            environ_get: (pointers, bytes) => {
                if (entry.length)
                    this.view.setUint32(pointers, bytes, true);
                this.u8.set(entry, bytes);
                return 0;
            },
            clock: () => Math.trunc(performance.now() * 1000),
            getentropy: (to, size) => {
                const bytes = new Uint8Array(size);
                crypto.getRandomValues(bytes);
                this.u8.set(bytes, to);
                return 0;
            },
        };
    }

    #stat(path, to) {
        const bytes = this.#files.get(path);
        if (!bytes && !this.#folders.has(path))
            return -E.NOENT;
        this.u8.fill(0, to, to + 88);
        const view = this.view;
        view.setUint32(to + 12, bytes ? FILE : FOLDER, true);
        view.setUint32(to + 16, 1, true);
        view.setBigInt64(to + 40, BigInt(bytes?.length ?? 0), true);
        view.setUint32(to + 48, 4096, true);
        return 0;
    }

    #path(pointer) {
        const path = this.text(pointer);
        return path.length > 1 ? path.replace(/\/+$/, '') : path;
    }

    #openFile(pointer, flags) {
        const path = this.#path(pointer), bytes = this.#files.get(path);
        if (flags & 3)
            return -E.ACCES;
        if (!bytes && !this.#folders.has(path))
            return -E.NOENT;
        let fd = 3;
        while (this.#open.has(fd))
            fd++;
        this.#open.set(fd, { path, bytes: bytes ?? new Uint8Array(0), at: 0 });
        return fd;
    }

    // Fills the parts of memory that `list` has with bytes from `at` on; returns their number.
    #read(bytes, at, list, parts) {
        const view = this.view, memory = this.u8;
        let done = 0;
        for (let n = 0; n < parts; n++) {
            const to = view.getUint32(list + 8 * n, true), room = view.getUint32(list + 8 * n + 4, true);
            const part = bytes.subarray(at + done, at + done + room);
            memory.set(part, to);
            done += part.length;
        }
        return done;
    }

    #fileCalls() {
        const file = (fd) => this.#open.get(fd);
        return {
            __syscall_open: (path, flags) => this.#openFile(path, flags),
            __syscall_openat: (_, path, flags) => this.#openFile(path, flags),
            __syscall_fstat64: (fd, to) => (file(fd) ? this.#stat(file(fd).path, to) : -E.BADF),
            __syscall_stat64: (path, to) => this.#stat(this.#path(path), to),
            __syscall_lstat64: (path, to) => this.#stat(this.#path(path), to),
            __syscall_fstatat64: (_, path, to) => this.#stat(this.#path(path), to),
            __syscall_faccessat: (_, pointer) => {
                const path = this.#path(pointer);
                return this.#files.has(path) || this.#folders.has(path) ? 0 : -E.NOENT;
            },
            __syscall_readlink: (pointer) => {
                const path = this.#path(pointer);
                return this.#files.has(path) || this.#folders.has(path) ? -E.INVAL : -E.NOENT;
            },
            __syscall_fcntl64: () => 0,
            _mmap_js: () => -E.NODEV, // files are read instead
            fd_close: (fd) => (this.#open.delete(fd) ? 0 : E.BADF),
            fd_read: (fd, list, parts, count) => {
                const from = file(fd);
                if (!from)
                    return E.BADF;
                const done = this.#read(from.bytes, from.at, list, parts);
                from.at += done;
                this.view.setUint32(count, done, true);
                return 0;
            },
            fd_pread: (fd, list, parts, at, count) => {
                if (!file(fd))
                    return E.BADF;
                this.view.setUint32(count, this.#read(file(fd).bytes, Number(at), list, parts), true);
                return 0;
            },
            fd_seek: (fd, offset, whence, place) => {
                const from = file(fd);
                if (!from)
                    return E.BADF;
                const at = Number(offset) + [0, from.at, from.bytes.length][whence];
                if (!(at >= 0))
                    return E.INVAL;
                from.at = at;
                this.view.setBigInt64(place, BigInt(at), true);
                return 0;
            },
        };
    }
}
