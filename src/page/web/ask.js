// SPDX-License-Identifier: MIT
// The one place from which a live page asks for data: ask(request, signal) resolves to the answer's
// JSON text, and rejects with a reason to show. src/page/serve_app.h describes requests. They go to
// the server that the page comes from or, if the page has its model inside, to a Worker, where the
// same function answers them.

// The text of a good answer; else an exception with its reason.
function textOf(good, text) {
    if (good) return text;
    let reason = text;
    try {
        reason = JSON.parse(text).error;
    } catch {
        // A server's answer in plain text.
    }
    throw new Error(reason);
}

async function askServer(request, signal) {
    const sent = {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(request),
        signal,
    };
    let answer;
    try {
        answer = await fetch("api/view", sent);
    } catch (error) {
        if (signal?.aborted) throw error;
        throw new Error(
            "The server does not answer: start \u201cmha serve\u201d again and open its address.",
        );
    }
    return textOf(answer.ok, await answer.text());
}

// ---------------------------------------------------------------- Worker -----

function partText(id) {
    return document.getElementById(id).textContent;
}

// What a Worker is given at its start; from the page each time, so that it is held only once.
function engineParts(command) {
    const { translator, model, files } = JSON.parse(partText("live-engine"));
    return {
        translator,
        model,
        files: files.map((name, n) => ({ name, text: partText(`live-file-${n}`) })),
        module: partText("live-module"),
        command,
    };
}

// A Worker with the model: ask(body) resolves to its answers, in the order of the questions.
function startEngine(command) {
    const source = new Blob([partText("live-worker")], { type: "text/javascript" });
    const address = URL.createObjectURL(source);
    const worker = new Worker(address);
    const waiting = [];
    let failure = null;

    function fail(reason) {
        failure = new Error(`The model cannot be run here: ${reason}`);
        for (const { reject } of waiting.splice(0)) reject(failure);
    }
    worker.onerror = (event) => fail(event.message ?? "the Worker did not start");
    worker.onmessage = ({ data }) => {
        URL.revokeObjectURL(address);
        if (data.failure) fail(data.failure);
        else waiting.shift()?.resolve(data);
    };

    function send(message) {
        if (failure) return Promise.reject(failure);
        worker.postMessage(message);
        return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    }
    const opened = send({ open: engineParts(command) });
    opened.catch(() => {}); // every question reports it
    return {
        ask: async (body) => {
            const { status, text } = await send({ body });
            return textOf(status === 200, text);
        },
        get failed() {
            return failure !== null;
        },
        stop: () => worker.terminate(),
    };
}

// One engine for the answers that are shown at once; it is never interrupted. Another one measures
// the effects of single heads: it starts when it is first needed, and is stopped when its answer is
// no longer wanted, since nothing else can interrupt it.
function workerAsk(command) {
    let quick = startEngine(command),
        slow = null,
        last = Promise.resolve();

    async function askQuick(request, signal) {
        const before = last;
        let done;
        last = new Promise((resolve) => {
            done = resolve;
        });
        await before;
        try {
            signal?.throwIfAborted();
            if (quick.failed) quick = startEngine(command);
            return await quick.ask(JSON.stringify(request));
        } finally {
            done();
        }
    }
    async function askSlow(request, signal) {
        slow ??= startEngine(command);
        const own = slow;
        const stop = () => {
            own.stop();
            if (slow === own) slow = null;
        };
        signal?.addEventListener("abort", stop, { once: true });
        try {
            return await own.ask(JSON.stringify(request));
        } finally {
            signal?.removeEventListener("abort", stop);
            if (own.failed) stop();
        }
    }
    return (request, signal) =>
        request.effects === true ? askSlow(request, signal) : askQuick(request, signal);
}

let asking = askServer;

// Opens the model of a page that has it inside; to be called before ask(). `command` is the command
// line of the page, for its answers.
export function startAsking(command) {
    if (document.documentElement.dataset.live === "worker") asking = workerAsk(command);
}

export function ask(request, signal) {
    return asking(request, signal);
}
