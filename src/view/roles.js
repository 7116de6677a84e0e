// SPDX-License-Identifier: MIT
// The role of a head over many sentences, as the program found it, in the words of the page. It has
// the shape of roleOf(): {role, rule, letter, words, score, over, runner}.

const RULES = {
    sink: ["F", () => "rests where it finds nothing to look at"],
    offset: ["P", (name) => `looks at a fixed place: ${name}`],
    self: ["S", () => "looks at its own place"],
    duplicate: ["D", () => "looks at the same word before"],
    induction: ["I", () => "looks at what followed the same word before"],
    question: ["Q", () => "looks at the question mark"],
    rare: ["R", () => "looks at the rarest word"],
    relation: ["G", (name) => `goes from a word to its partner: ${name}`],
    broad: ["B", () => "looks at everything alike"],
    far: ["L", () => "looks far away"],
};

// record: of page.study.heads.
export function studiedRole(record) {
    const runner = { role: record.next, score: record.next_score };
    if (!record.found) {
        const nearest = { role: record.name, score: record.score };
        const words = "has no simple rule";
        return { role: "mixed", rule: "mixed", letter: "M", words, score: null, runner: nearest };
    }
    const aligns = record.name.startsWith("aligned");
    const [letter, words] = aligns
        ? ["A", () => "looks at the word it translates"]
        : RULES[record.rule];
    return {
        role: record.name,
        rule: record.rule,
        letter,
        words: words(record.name),
        score: record.score,
        over: `${record.count} cases, 95 % ${record.low.toFixed(2)} to ${record.high.toFixed(2)}`,
        runner,
    };
}
