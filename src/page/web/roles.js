// SPDX-License-Identifier: MIT
// Roles of heads, by the rules and names of "mha heads": over many sentences as the program found
// them, or on this sentence alone. Both have the shape
//   {role, rule, letter, words, score, over, runner: {role, score}}
// `score` over how much, null without a role; the runner-up comes nearest to its threshold.

// In the order in which the rules are tried. A rule has a letter, a shape in the style sheet, and
// words for the legend.
export const RULES = {
    sink: { letter: "K", name: "sink", words: "rests on the first word or the end" },
    before: { letter: "P", name: "previous", words: "looks at a fixed place before its own" },
    after: { letter: "N", name: "next", words: "looks at a fixed place behind its own" },
    self: { letter: "S", name: "self", words: "looks at its own place" },
    duplicate: { letter: "D", name: "duplicate", words: "looks at the same word before" },
    induction: {
        letter: "I",
        name: "induction",
        words: "looks at what followed the same word before",
    },
    question: { letter: "Q", name: "question mark", words: "looks at the question mark" },
    rare: { letter: "R", name: "rare word", words: "looks at the rarest word" },
    relation: {
        letter: "G",
        name: "grammar",
        words: "goes from a word to its partner in the grammar, as from determiner to noun",
    },
    aligned: { letter: "A", name: "aligned", words: "looks at the word it translates" },
    broad: { letter: "B", name: "broad", words: "looks at everything alike" },
    far: { letter: "F", name: "far", words: "looks far away: a third of the sentence or more" },
    mixed: { letter: "M", name: "mixed", words: "has no simple rule" },
};

function made(rule, role, rest) {
    const { letter, words } = RULES[rule];
    return { role, rule, letter, words, ...rest };
}

function ruleOf({ rule, name }) {
    if (rule === "offset") return /next|after/.test(name) ? "after" : "before";
    return name.startsWith("aligned") ? "aligned" : rule;
}

// Of one sentence there is none.
function intervalWords({ low, high }) {
    return low === null ? "" : `, 95 % ${low.toFixed(2)} to ${high.toFixed(2)}`;
}

// record: of page.study.heads.
export function studiedRole(record) {
    const runner = { role: record.next, score: record.next_score };
    if (!record.found)
        return made("mixed", "mixed", {
            score: null,
            runner: { role: record.name, score: record.score },
        });
    return made(ruleOf(record), record.name, {
        score: record.score,
        over: `${record.count} cases${intervalWords(record)}`,
        runner,
    });
}

// --------------------------------------------------------- on one sentence -----

function offsetName(r) {
    if (Math.abs(r) === 1) return r < 0 ? "previous" : "next";
    return `${Math.abs(r)} ${r < 0 ? "before" : "after"}`;
}

// What is held against which threshold: [rule, role, score, threshold]. Alignment comes first: on
// one sentence it is too often the same place.
function scoresOf(head) {
    const m = head.measures,
        begin = head.columnWords[0] === "\u2039begin\u203a";
    const byShare = (m.offset_share ?? 0) / 0.9 > (m.offset_mass ?? 0) / 0.5;
    const sink = { true: "sink: end", false: begin ? "sink: begin" : "sink: first word" };
    return [
        ["aligned", "aligned: says", m.says, 0.6],
        ["sink", sink[(m.end ?? 0) > m.first], Math.max(m.first, m.end ?? 0), 0.6],
        byShare
            ? [m.offset < 0 ? "before" : "after", offsetName(m.offset), m.offset_share, 0.9]
            : [m.offset < 0 ? "before" : "after", offsetName(m.offset), m.offset_mass, 0.5],
        ["self", head.kind === "cross" ? "same place" : "self", m.self, 0.5],
        ["duplicate", "duplicate", m.duplicate, 0.4],
        ["induction", "induction", m.induction, 0.4],
        ["broad", "broad", m.broad, 0.9],
        ["far", "far", m.far, 1 / 3],
    ].filter(([, , score]) => score !== null && score !== undefined);
}

export function roleHere(head) {
    const scored = scoresOf(head).map(([rule, role, score, least]) =>
        made(rule, role, { score, reach: score / least }),
    );
    const winner = scored.find((item) => item.reach >= 1);
    const [runner] = scored.filter((item) => item !== winner).sort((a, b) => b.reach - a.reach);
    const over = `${choosingRows(head)} rows`;
    return { ...(winner ?? made("mixed", "mixed", { score: null })), over, runner };
}

// Rows that see more than one column.
export function choosingRows(head) {
    if (head.columns < 2) return 0;
    return head.causal ? head.rows - 1 : head.rows;
}

// The entropy of equal weights, in nats.
export function largestEntropy(head) {
    if (!head.causal) return Math.log(head.columns);
    let sum = 0;
    for (let i = 1; i < head.rows; i++) sum += Math.log(Math.min(i + 1, head.columns));
    return sum / Math.max(1, head.rows - 1);
}
