// SPDX-License-Identifier: MIT
// node test_roles.mjs MHA MODULES GOLDEN [ADDRESS]: one head and one sentence have one role and one
// set of numbers, wherever they are shown. ADDRESS: of a running "mha serve"; none: it is left out.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { dataOf } from "./browser.mjs";
import { check, equal, finish, near, test } from "./harness.mjs";

const [mha, modules, goldenPath, address] = process.argv.slice(2);
const folder = pathToFileURL(`${modules}/`);
const { headName, readPage } = await import(new URL("data.js", folder));
const { roleHere, RULES, studiedRole } = await import(new URL("roles.js", folder));
const { alignmentError } = await import(new URL("query.js", folder));
const golden = JSON.parse(readFileSync(goldenPath, "utf8"));

const run = (...args) =>
    execFileSync(mha, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

function pageOf(...args) {
    run("view", "-o", "page.html", ...args);
    return readPage(JSON.stringify(dataOf("page.html")));
}

// ---------------------------------------------------- heads of the golden file -----

// Cases that a file of weights can hold, by what its heads have in common.
function importable() {
    const groups = new Map();
    for (const one of golden.filter((head) => !head.model_only)) {
        const key = JSON.stringify([one.kind, one.rows, one.columns, one.tokens]);
        groups.set(key, [...(groups.get(key) ?? []), one]);
    }
    return [...groups.values()];
}

// The weights of the cases, and those of a last head that looks at everything: a file without it
// would be taken for one that only looks back.
function writeWeights(cases) {
    const [{ kind, rows, columns, causal }] = cases;
    const values = new Float32Array((cases.length + 1) * rows * columns);
    cases.forEach(({ weights }, n) =>
        weights.forEach((row, i) => {
            for (const [j, weight] of row) values[(n * rows + i) * columns + j] = weight;
        }),
    );
    for (let i = 0; i < rows; i++) {
        const seen = causal ? i + 1 : columns;
        const from = (cases.length * rows + i) * columns;
        values.fill(1 / seen, from, from + seen);
    }
    const bytes = Buffer.from(values.buffer);
    const shape = [cases.length + 1, rows, columns];
    const header = Buffer.from(
        JSON.stringify({ [`${kind}.0`]: { dtype: "F32", shape, data_offsets: [0, bytes.length] } }),
    );
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    writeFileSync("golden.safetensors", Buffer.concat([length, header, bytes]));
}

// Words of both sides; those of the columns are the tokens of the cases.
function writeWords([{ kind, rows, columns, tokens }]) {
    const words = (count) => Array.from({ length: count }, (_, n) => `w${tokens[n] ?? n}`);
    const sides = { encoder: ["source"], decoder: ["target"], cross: ["source", "target"] }[kind];
    const counts = { source: columns, target: rows };
    const all = Object.fromEntries(sides.map((side) => [side, words(counts[side])]));
    writeFileSync("golden.json", JSON.stringify(all));
}

await test("golden_heads_have_their_roles_on_the_page", () => {
    let seen = 0;
    for (const cases of importable()) {
        writeWeights(cases);
        writeWords(cases);
        const page = pageOf("--weights", "golden.safetensors", "--tokens", "golden.json");
        const heads = page.sentences[0].heads[cases[0].kind];
        cases.forEach((wanted, n) => {
            const { role, score, runner } = roleHere(heads[n]);
            const nearest = { role: wanted.nearest, score: wanted.score };
            const next = { role: wanted.next, score: wanted.next_score };
            const found = wanted.role !== "mixed";
            equal(role, wanted.role, wanted.name);
            if (found) near(score, wanted.score, 1e-5, `${wanted.name}: score`);
            else equal(score, null, `${wanted.name}: no score`);
            equal(runner.role, (found ? next : nearest).role, `${wanted.name}: runner-up`);
            near(runner.score, (found ? next : nearest).score, 1e-5, `${wanted.name}: its score`);
            for (const [name, value] of Object.entries(wanted.measures))
                if (value === null) equal(heads[n].measures[name], null, `${wanted.name}: ${name}`);
                else near(heads[n].measures[name], value, 1e-5, `${wanted.name}: ${name}`);
            seen++;
        });
    }
    check(seen > 40, `only ${seen} heads`);
});

await test("every_role_of_the_golden_file_has_its_letter", () => {
    const rules = { sink: "K", previous: "P", before: "P", next: "N", after: "N", self: "S" };
    Object.assign(rules, { "same place": "S", duplicate: "D", induction: "I", question: "Q" });
    Object.assign(rules, { rare: "R", aligned: "A", "one word": "W", broad: "B", far: "F", mixed: "M" });
    const ruleOf = (name) => {
        if (/previous|next|before|after/.test(name)) return "offset";
        if (name === "same place") return "self";
        return /aligned/.test(name) ? "relation" : /^\w+/.exec(name)[0];
    };
    for (const { role, nearest, score, next, next_score } of golden) {
        const record = { found: role !== "mixed", rule: ruleOf(nearest), name: nearest, score };
        const shown = studiedRole({ ...record, low: null, high: null, count: 1, next, next_score });
        const word = Object.keys(rules).find((part) => role.includes(part));
        equal(shown.role, role, "its name");
        equal(shown.letter, rules[word], role);
        equal(shown.words, RULES[shown.rule].words, "its words");
    }
});

// ------------------------------------------------ the model of the repository -----

const TEXTS = [
    "the black cat sleeps",
    "the cat that i saw yesterday ran away",
    "does the cat sleep?",
    "will your aunt see the small dog next to the old house?",
    "is the zyzzyva black?", // a word that the model does not know
    "cat the the cat the cat", // none of the grammar's
    "sleep",
    // More than 20 aligned words: enough for the rule of alignment.
    "these nurses who looked at many hats did not arrive when your nine women did not talk to " +
        "the frog",
    // The model translates this otherwise than the grammar.
    "his uncle talked to their woman and she listened to him",
];

// What a page shows of every head, by its name: {role, score, runner, measures}.
function shownHeads(page) {
    const shown = new Map();
    for (const heads of Object.values(page.sentences[0].heads))
        for (const head of heads) shown.set(headName(head), { head, ...roleHere(head) });
    return shown;
}

// Not of this sentence on the page (score, importance), or of another head (apart).
const ELSEWHERE = ["layer", "head", "score", "importance", "apart", "sink", "aer"];

function compare(told, page, where) {
    const shown = shownHeads(page);
    equal(shown.size, told.length, `${where}: heads`);
    for (const one of told) {
        const name = `${one.kind} ${one.layer}.${one.head}`,
            own = shown.get(name),
            m = own.head.measures,
            best = one.best ?? one.nearest,
            next = one.best ? one.next : one.nearest;
        equal(own.role, one.role, `${where}: ${name}`);
        equal(own.score, one.best ? best.score : null, `${where}: score of ${name}`);
        equal(own.runner.role, next.name, `${where}: runner-up of ${name}`);
        equal(own.runner.score, next.score, `${where}: score of the runner-up of ${name}`);
        for (const [measure, value] of Object.entries(one.measures))
            if (!ELSEWHERE.includes(measure))
                equal(m[measure], value, `${where}: ${measure} of ${name}`);
        for (const measure of Object.keys(m))
            if (!/^aer_/.test(measure) && m[measure] !== null)
                equal(one.measures[measure], m[measure], `${where}: ${measure} of ${name}`);
        equal(Math.max(m.first, m.end ?? 0), one.measures.sink, `${where}: sink of ${name}`);
        if (one.measures.aer === undefined) equal(m.aer_says, null, `${where}: aer of ${name}`);
        else near(alignmentError(m), one.measures.aer, 1e-6, `${where}: aer of ${name}`);
    }
}

await test("mha_heads_and_mha_view_agree_on_every_head", () => {
    const kinds = new Set(),
        roles = new Set();
    let questions = 0;
    for (const text of TEXTS) {
        const told = JSON.parse(run("heads", "--json", text)).heads;
        compare(told, pageOf("--study", "0", text), text);
        for (const { kind, role, measures } of told) {
            kinds.add(kind);
            roles.add(role);
            questions += "question" in measures;
        }
    }
    equal(kinds.size, 3, "encoder, decoder and cross");
    equal(questions, 3 * 32, "three questions, measured in encoder and cross-attention");
    for (const role of ["mixed", "self", "same place", "rare word", "aligned: says"])
        check(roles.has(role), `no sentence has the role ${role}: ${[...roles].join(", ")}`);
});

await test("the_table_of_mha_heads_has_the_roles_of_the_page", () => {
    const [, text] = TEXTS;
    const shown = shownHeads(pageOf("--study", "0", text));
    const rows = run("heads", text)
        .split("\n")
        .filter((line) => /^(encoder|decoder|cross) \d/.test(line));
    equal(rows.length, shown.size, "rows");
    for (const row of rows)
        equal(row.slice(13, 34).trim(), shown.get(row.slice(0, 12).trim()).role, row.slice(0, 12));
});

if (address)
    await test("mha_heads_and_mha_serve_agree_on_every_head", async () => {
        for (const text of TEXTS.slice(0, 3)) {
            const answer = await fetch(`${address}api/view`, {
                method: "POST",
                headers: { "Content-Type": "application/json" },
                body: JSON.stringify({ text }),
            });
            const told = JSON.parse(run("heads", "--json", text)).heads;
            compare(told, readPage(await answer.text()), `serve, ${text}`);
        }
    });

finish("test_roles");
