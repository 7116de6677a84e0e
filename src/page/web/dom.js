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
                    head.map((text) => el("th", { scope: "col" }, text)),
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

export function download(name, blob) {
    const address = URL.createObjectURL(blob);
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
}
