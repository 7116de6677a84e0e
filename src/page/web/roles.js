// SPDX-License-Identifier: MIT
// Letter, shape and words of the role of a head. The program finds the roles
// (src/heads/head_roles.c has the rules); this file knows no threshold. A role has the form
//   {role, rule, letter, words, score, threshold, over, runner: {role, score, threshold}}
// where score is null without a role, and the runner-up is the other rule nearest to its threshold.
// Roles, measures and the counts below are of whole words, also where the page shows tokens.

// In the order in which the rules are tried. A rule has a letter, a shape in the style sheet, and
// words for the legend.
export const RULES = {
    sink: { letter: "K", name: "sink", words: "looks at the first word, or at a begin or end mark" },
    before: { letter: "P", name: "previous", words: "looks at a fixed place before its own" },
    after: { letter: "N", name: "next", words: "looks at a fixed place after its own" },
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
    one: { letter: "W", name: "one word", words: "looks at one word from everywhere" },
    aligned: { letter: "A", name: "aligned", words: "looks at the word it translates" },
    broad: { letter: "B", name: "broad", words: "looks at all words equally" },
    far: { letter: "F", name: "far", words: "looks far away: a third of the sentence or more" },
    mixed: { letter: "M", name: "mixed", words: "none of the rules holds" },
};

// The rules of heads that read patches (src/heads/picture_roles.h), in their order.
export const PICTURE_RULES = {
    "picture-class-token": {
        letter: "C",
        name: "class token",
        words: "looks at the tokens before the patches",
    },
    "picture-self": { letter: "S", name: "self", words: "looks at its own patch" },
    "picture-above": { letter: "\u2191", name: "above", words: "looks at the patch above" },
    "picture-below": { letter: "\u2193", name: "below", words: "looks at the patch below" },
    "picture-left": { letter: "\u2190", name: "left", words: "looks at the patch to the left" },
    "picture-right": { letter: "\u2192", name: "right", words: "looks at the patch to the right" },
    "picture-neighbours": {
        letter: "N",
        name: "neighbours",
        words: "looks at the eight patches around its own",
    },
    "picture-same-row": { letter: "\u2194", name: "same row", words: "looks along its own row" },
    "picture-same-column": {
        letter: "\u2195",
        name: "same column",
        words: "looks along its own column",
    },
    "picture-border": { letter: "E", name: "border", words: "looks at the edge of the picture" },
    "picture-same-part": {
        letter: "P",
        name: "same part",
        words: "looks at the object from the object, at the ground from the ground",
    },
    "picture-object": {
        letter: "O",
        name: "object",
        words: "looks at the object, from wherever",
    },
    "picture-broad": { letter: "B", name: "broad", words: "looks at all patches equally" },
    "picture-far": { letter: "F", name: "far", words: "looks far away on the picture" },
    mixed: RULES.mixed,
};

// The rules that heads of these items can have.
export function rulesOf(items) {
    return items.some(({ here }) => here.picture) ? PICTURE_RULES : RULES;
}

// before, after and aligned are shown apart from the other offsets and relations.
function ruleOf({ rule, name }) {
    if (rule === "picture") return `picture-${name.replaceAll(" ", "-")}`;
    if (rule === "offset") return /next|after/.test(name) ? "after" : "before";
    return name.startsWith("aligned") ? "aligned" : rule;
}

// Of a head whose rows are words and whose columns are patches there are no rules.
const NO_ROLE = {
    rule: "mixed",
    picture: true,
    letter: "M",
    words: "rules are for heads whose rows are patches",
    role: "no rule",
    score: null,
    threshold: null,
    runner: { role: "", score: null, threshold: null },
};

// record: a role as the program writes it, of page.study.heads or of a kind's "roles".
function roleOf(record, over) {
    const rule = record.found ? ruleOf(record) : "mixed";
    if (record.rule === "picture" && record.name === "") return { ...NO_ROLE, over };
    const { letter, words } = (record.rule === "picture" ? PICTURE_RULES : RULES)[rule];
    return {
        rule,
        picture: record.rule === "picture",
        letter,
        words,
        over,
        role: record.found ? record.name : "mixed",
        score: record.found ? record.score : null,
        threshold: record.threshold,
        runner: record.found
            ? { role: record.next, score: record.next_score, threshold: record.next_threshold }
            : { role: record.name, score: record.score, threshold: record.threshold },
    };
}

// The rule nearest to its threshold, or the next one if there is a role; "": there is none.
export function runnerText({ score, runner }) {
    if (runner.role === "") return "";
    return (
        `${score === null ? "nearest" : "next"}: ${runner.role} ${runner.score.toFixed(2)} ` +
        `(needs ${runner.threshold.toFixed(2)})`
    );
}

// For a tooltip: what the role means, with its score and the threshold of its rule.
export function roleTitle(role) {
    const score =
        role.score === null
            ? runnerText(role)
            : `score ${role.score.toFixed(2)} (needs ${role.threshold.toFixed(2)})`;
    return score === "" ? role.words : `${role.words}; ${score}`;
}

// One sentence has no interval.
function intervalWords({ low, high }) {
    return low === null ? "" : `, 95 % ${low.toFixed(2)} to ${high.toFixed(2)}`;
}

// Over the sentences of the study.
export function studiedRole(record) {
    return roleOf(record, `${record.count} cases${intervalWords(record)}`);
}

// On this sentence or picture, as "mha heads TEXT" prints it.
export function roleHere(head) {
    const record = head.roleRecord;
    const over =
        record.rule === "relation"
            ? `${record.count} words`
            : `${record.rule === "picture" ? record.count : choosingRows(head)} rows`;
    return roleOf(record, over);
}

// Rows that see more than one column.
export function choosingRows({ words, causal }) {
    if (words.columns < 2) return 0;
    return causal ? words.rows - 1 : words.rows;
}

// The mean over such rows of the entropy of equal weights, in nats.
export function largestEntropy({ words, causal }) {
    if (!causal) return Math.log(words.columns);
    let sum = 0;
    for (let i = 1; i < words.rows; i++) sum += Math.log(Math.min(i + 1, words.columns));
    return sum / Math.max(1, words.rows - 1);
}
