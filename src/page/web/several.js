// SPDX-License-Identifier: MIT
// Several heads in one figure, each in a colour of its own: which ones, and the buttons that choose
// them. The choice is in the address: heads=1,2,5.
import { el } from "./dom.js";

// Colours that can be told apart, also by those who see few hues.
const HEAD_COLORS = [
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#8c6bb1",
    "#808080",
];

export function headColor(number) {
    return HEAD_COLORS[(number - 1) % HEAD_COLORS.length];
}

// The numbers in the address that are heads, in their order; none: there is no choice.
export function givenHeads({ heads }, count) {
    const numbers = heads.slice(0, 1000).split(",").map(Number);
    return [...new Set(numbers)]
        .filter((n) => Number.isInteger(n) && n >= 1 && n <= count)
        .sort((a, b) => a - b);
}

// The heads that are shown together; without a choice all of them.
export function chosenHeads(state, count) {
    const given = givenHeads(state, count);
    return given.length > 0 ? given : Array.from({ length: count }, (_, n) => n + 1);
}

function headButton(app, n, chosen, count) {
    const toggle = () => {
        const next = chosen.includes(n) ? chosen.filter((other) => other !== n) : [...chosen, n];
        const all = next.length === count;
        app.set({ heads: all ? "" : next.sort((a, b) => a - b).join(",") });
    };
    return el(
        "button",
        {
            type: "button",
            id: `heads-${n}`,
            style: `--head:${headColor(n)}`,
            "aria-pressed": String(chosen.includes(n)),
            "aria-label": `head ${n}`,
            onclick: toggle,
        },
        String(n),
    );
}

// Buttons for heads 1 to count, and one for all of them or for the first four.
export function headsChooser(app, count, chosen, label) {
    const some = chosen.length < count;
    return el(
        "div",
        { class: "heads-chooser", role: "group", "aria-label": label },
        el("span", { class: "hint" }, label),
        Array.from({ length: count }, (_, n) => headButton(app, n + 1, chosen, count)),
        some || count > 4
            ? el(
                  "button",
                  {
                      type: "button",
                      id: some ? "heads-all" : "heads-four",
                      onclick: () => app.set({ heads: some ? "" : "1,2,3,4" }),
                  },
                  some ? "all" : "four",
              )
            : null,
    );
}

// The values of some heads as series of a figure. rowsOf(head): the part that is shown.
export function headSeries(heads, rowsOf) {
    return heads.map((head) => ({
        name: `${head.layer}.${head.head}`,
        color: headColor(head.head),
        values: rowsOf(head),
    }));
}
