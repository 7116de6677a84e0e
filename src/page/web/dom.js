// SPDX-License-Identifier: MIT
// Makes elements in one call, el("button", {id: "x", onclick: f}, "text", child), and the controls
// that several views share.

// Windows up to this many pixels wide have one column, as in the style sheet.
export const NARROW = 980;

export function el(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (value === undefined || value === null || value === false) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (name === "value") element.value = value;
        else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
    return element;
}

// A row of buttons, one of them pressed. choices: {value: text}.
export function chooser(id, label, choices, chosen, choose) {
    return el(
        "div",
        { class: "chooser", role: "group", "aria-label": label },
        Object.entries(choices).map(([value, text]) =>
            el(
                "button",
                {
                    id: `${id}-${value}`,
                    type: "button",
                    "aria-pressed": String(value === String(chosen)),
                    onclick: () => choose(value),
                },
                text,
            ),
        ),
    );
}

// A list to choose from. choices: [[value, text]].
export function picker(id, label, choices, chosen, choose) {
    return el(
        "label",
        { class: "picker" },
        el("span", {}, label),
        el(
            "select",
            { id, onchange: (event) => choose(event.target.value) },
            choices.map(([value, text]) =>
                el("option", { value, selected: String(value) === String(chosen) }, text),
            ),
        ),
    );
}

export function tableElement(rows, caption) {
    const [head, ...body] = rows;
    return el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
        el(
            "table",
            {},
            el("caption", {}, caption),
            el(
                "thead",
                {},
                el(
                    "tr",
                    {},
                    head.map((text) =>
                        text === "" ? el("td", {}) : el("th", { scope: "col" }, text),
                    ),
                ),
            ),
            el(
                "tbody",
                {},
                body.map(([first, ...rest]) =>
                    el(
                        "tr",
                        {},
                        el("th", { scope: "row" }, first),
                        rest.map((text) => el("td", {}, text)),
                    ),
                ),
            ),
        ),
    );
}

// Whether a button of the mouse, or a finger, is down: what is pressed must stay until it is released,
// or the click would be lost.
let pressed = false;
const waitingForRelease = [];

function setReleased() {
    pressed = false;
    // The click comes after the release, in the same task.
    setTimeout(() => {
        if (!pressed) for (const go of waitingForRelease.splice(0)) go();
    }, 0);
}

export function watchPointer() {
    document.addEventListener("pointerdown", () => (pressed = true), true);
    for (const name of ["pointerup", "pointercancel", "dragend"])
        document.addEventListener(name, setReleased, true);
    document.addEventListener("pointermove", (event) => {
        if (pressed && event.buttons === 0) setReleased();
    });
    window.addEventListener("blur", setReleased);
}

// Resolves when nothing is pressed: answers wait for it before the page is made again.
export function released() {
    return pressed ? new Promise((go) => waitingForRelease.push(go)) : Promise.resolve();
}

export function download(name, blob) {
    const address = URL.createObjectURL(blob);
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
}
