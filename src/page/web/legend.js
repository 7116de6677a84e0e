// SPDX-License-Identifier: MIT
// The badge of a role, a letter in a shape, and the legend of all letters.
import { roleTitle, rulesOf } from "./roles.js";
import { el } from "./dom.js";

// role: of a head, or a rule without a score.
export function roleBadge(role, name = role.role) {
    return el(
        "span",
        { class: `badge role-${role.rule}`, title: role.runner ? roleTitle(role) : role.words },
        el("b", { "aria-hidden": "true" }, role.letter),
        name,
    );
}

// The letters of some heads, as buttons that find them on the wall, and a list of all letters.
export function legend(app, items = app.items()) {
    const counts = new Map();
    for (const { role } of items) counts.set(role.rule, (counts.get(role.rule) ?? 0) + 1);
    const entries = Object.entries(rulesOf(items)).map(([rule, { letter, name, words }]) => ({
        rule,
        letter,
        name,
        words,
        count: counts.get(rule) ?? 0,
    }));
    const button = (entry) =>
        el(
            "button",
            {
                type: "button",
                class: "quiet",
                id: `legend-${entry.rule}`,
                title: `${entry.words}: find these`,
                onclick: () => app.set({ view: "wall", find: entry.name.split(" ")[0] }),
            },
            roleBadge({ ...entry, role: entry.name }, `${entry.name} ${entry.count}`),
        );
    const line = (entry) => [
        el("dt", {}, roleBadge({ ...entry, role: entry.name })),
        el("dd", {}, entry.words),
    ];
    return el(
        "div",
        { class: "legend" },
        entries.filter(({ count }) => count > 0).map(button),
        el(
            "details",
            {},
            el("summary", { id: "legend-all" }, "All letters"),
            el("dl", {}, entries.map(line)),
        ),
    );
}
