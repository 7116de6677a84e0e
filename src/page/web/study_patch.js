// SPDX-License-Identifier: MIT
// The part of the Study view that patches heads: their outputs are taken from another sentence.
// Chosen heads are in the address: patched=cross.1.2,cross.2.4, and so is the sentence: second=....
import { headName } from "./data.js";
import { el } from "./dom.js";

const PLACES = { encoder: "the encoder", decoder: "the decoder", cross: "cross-attention" };

// The heads of an address that the page has.
export function patchedHeads(app) {
    const { kinds } = app.tokens.sentences[0];
    const known = new Map();
    for (const part of app.state.patched.split(",")) {
        const [, name, layer, head] = /^([a-z]+)\.(\d+)\.(\d+)$/.exec(part) ?? [];
        const kind = kinds.find((one) => one.name === name);
        const place = { kind: name, layer: Number(layer), head: Number(head) };
        const within = (number, most) => number >= 1 && number <= most;
        if (kind && within(place.layer, kind.layers) && within(place.head, kind.heads))
            known.set(headName(place), place);
    }
    return [...known.values()];
}

function patchedText(heads) {
    return heads.map(({ kind, layer, head }) => `${kind}.${layer}.${head}`).join(",");
}

// A button for each head of the chosen kind, and one for all of a layer.
function layerLine(app, chosen, layer, count) {
    const { kind } = app.state;
    const is = (head) =>
        chosen.some((one) => one.kind === kind && one.layer === layer && one.head === head);
    const heads = Array.from({ length: count }, (_, n) => n + 1);
    const others = chosen.filter((one) => one.kind !== kind || one.layer !== layer);
    const set = (list) =>
        app.set({
            patched: patchedText([...others, ...list.map((head) => ({ kind, layer, head }))]),
        });
    const all = heads.every(is);
    const button = (id, label, text, on, next) =>
        el(
            "button",
            {
                type: "button",
                id,
                "aria-label": label,
                "aria-pressed": String(on),
                onclick: () => set(next),
            },
            text,
        );
    return el(
        "div",
        { class: "patch-line", role: "group", "aria-label": `${kind}, layer ${layer}` },
        el("span", { class: "hint" }, `${layer}.`),
        heads.map((head) =>
            button(
                `patch-${layer}-${head}`,
                `patch ${kind} ${layer}.${head}`,
                String(head),
                is(head),
                heads.filter((other) => (other === head ? !is(head) : is(other))),
            ),
        ),
        button(
            `patch-${layer}-all`,
            `patch all heads of ${kind}, layer ${layer}`,
            "all",
            all,
            all ? [] : heads,
        ),
    );
}

export function patchTool(app) {
    const chosen = patchedHeads(app);
    const { layers, heads } = app.tokens.sentences[0].kinds.find(
        ({ name }) => name === app.state.kind,
    );
    const input = el("input", {
        id: "second",
        value: app.state.second,
        maxlength: 400,
        spellcheck: "false",
        autocomplete: "off",
    });
    return el(
        "div",
        { class: "study-tool" },
        el("h3", {}, "Patch heads from sentence B"),
        el(
            "p",
            { class: "hint" },
            "The outputs of the chosen heads, before W_O, become those that they have on B in the whole ",
            app.tokens.model.translates
                ? "model; its decoder reads the same translation."
                : "model, token by token.",
        ),
        el(
            "form",
            {
                class: "bar",
                onsubmit: (event) => {
                    event.preventDefault();
                    app.set({ second: input.value.trim() });
                },
            },
            el("label", { class: "grow picker" }, el("span", {}, "B"), input),
            el("button", { id: "second-go" }, "Read B"),
        ),
        el("p", { class: "hint" }, `Heads of ${PLACES[app.state.kind]}, by layer:`),
        Array.from({ length: layers }, (_, n) => layerLine(app, chosen, n + 1, heads)),
        chosen.length
            ? el(
                  "p",
                  { id: "patched-list" },
                  `${chosen.length > 6 ? `${chosen.length} heads` : chosen.map(headName).join(", ")} ` +
                      (app.state.second ? "from B. " : "chosen; write a sentence B. "),
                  el(
                      "button",
                      {
                          type: "button",
                          id: "unpatch",
                          onclick: () => app.set({ patched: "" }),
                      },
                      "Patch none",
                  ),
              )
            : null,
    );
}
