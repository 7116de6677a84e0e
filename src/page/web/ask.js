// SPDX-License-Identifier: MIT
// The one place from which a live page asks for data: a sentence with some heads changed, or the
// steps of one attention.

// request: what src/page/serve_app.h describes. Returns the answer as text.
export async function ask(request, signal) {
    const answer = await fetch("api/view", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(request),
        signal,
    });
    const text = await answer.text();
    if (answer.ok) return text;
    let message = text;
    if (answer.headers.get("Content-Type") === "application/json") message = JSON.parse(text).error;
    throw new Error(message);
}
