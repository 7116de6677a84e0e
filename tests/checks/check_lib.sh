# SPDX-License-Identifier: MIT
# Sourced by the check_*.sh scripts: the harness of test.h for shell scripts.
passed=0
failed=0

# check NAME COMMAND...: the command must succeed; what it prints is shown only if it does not.
check() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
        echo "ok   $name"
    else
        failed=$((failed + 1))
        printf '%s\n' "$output" | sed "s|^|$name: |" | head -n 20
        echo "FAIL $name"
    fi
}

finish() {
    echo "$(basename -s .sh "$0"): $passed passed, $failed failed, 0 skipped"
    [ $failed -eq 0 ]
}
