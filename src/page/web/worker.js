// SPDX-License-Identifier: MIT
// The Worker of a page that runs its model itself: opens the model with mha_page.wasm and answers
// requests as "mha serve" does, by the same function (js/src/mhajs_page.h). ask.js starts it.
//
//      {open: {translator, model, files: [{name, text}], module, command}}  ->  {opened: true}
//      {body}                                                               ->  {status, text}
//      after a failure                                                      ->  {failure: "reason"}
//
// Files and module are base64. Messages are answered one after another.
import { Host } from "../../../js/host.mjs";

const FAILED = 500;
let host = null;

function decodeBytes(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let n = 0; n < letters.length; n++) bytes[n] = letters.charCodeAt(n);
    return bytes;
}

// A copy of a text in the module's memory, with a zero byte at its end.
function putText(text) {
    const bytes = new TextEncoder().encode(text);
    const pointer = host.exports.malloc(bytes.length + 1);
    if (!pointer) throw new Error("out of memory");
    host.u8.set(bytes, pointer);
    host.u8[pointer + bytes.length] = 0;
    return { pointer, length: bytes.length };
}

async function openModel({ translator, model, files, module, command }) {
    host = new Host(await WebAssembly.compile(decodeBytes(module)));
    const bytes = Object.fromEntries(files.map(({ name, text }) => [name, decodeBytes(text)]));
    const problem = await host.withFiles(bytes, (folder) =>
        host.exports.mhajs_page_open(
            putText(model === "" ? folder : `${folder}/${model}`).pointer,
            translator ? 1 : 0,
            putText(command).pointer,
        ),
    );
    if (problem) throw new Error(host.text(problem));
    return { opened: true };
}

function answerBody(text) {
    const body = putText(text);
    const status = host.exports.malloc(4);
    const answer = host.exports.mhajs_page_ask(body.pointer, body.length, status);
    const result = answer
        ? { status: host.view.getInt32(status, true), text: host.text(answer) }
        : { status: FAILED, text: '{"error": "out of memory"}' };
    for (const pointer of [answer, status, body.pointer]) host.exports.free(pointer);
    return result;
}

let last = Promise.resolve();
onmessage = ({ data }) => {
    last = last
        .then(() => (data.open ? openModel(data.open) : answerBody(data.body)))
        .catch((error) => ({ failure: error.message }))
        .then((answer) => postMessage(answer));
};
