// SPDX-License-Identifier: MIT
// The harness of test.h for JavaScript: test("name", body), check(condition, message), finish().

let passed = 0,
    failed = 0;
let failures = [];

export function check(condition, message) {
    if (!condition) failures.push(message);
    return Boolean(condition);
}

export function equal(got, wanted, what) {
    return check(Object.is(got, wanted), `${what}: got ${got}, wanted ${wanted}`);
}

export function near(got, wanted, tolerance, what) {
    return check(Math.abs(got - wanted) <= tolerance, `${what}: got ${got}, wanted ${wanted}`);
}

export async function test(name, body) {
    failures = [];
    try {
        await body();
    } catch (error) {
        failures.push(error.stack ?? String(error));
    }
    if (failures.length === 0) {
        passed++;
        console.log(`ok   ${name}`);
        return;
    }
    failed++;
    console.log(`FAIL ${name}`);
    for (const failure of failures.slice(0, 10)) console.log(`    ${failure}`);
}

export function finish(program) {
    console.log(`${program}: ${passed} passed, ${failed} failed, 0 skipped`);
    process.exit(failed > 0 ? 1 : 0);
}
