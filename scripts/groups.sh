# Sourced by scripts/test: runs the slower groups of tests.

# pytest's exit codes: the user stopped it; none of the tests that were asked for is in this group.
INTERRUPTED=2
NO_TESTS=5

# run_groups ARGS...: the groups that $interop and $long name, each as a `pytest ARGS...` of its own.
#
# Half of the long tests wait in real time, half only compute: they run at the same time, the waiting ones
# first in line for the processor.
run_groups() {
    worst=$NO_TESTS
    if [ -n "$long" ]; then
        beside_log=$(mktemp)
        # With job control, or it would be deaf to the interrupt that stop_beside sends.
        set -m
        nice -n 19 "$PYTHON" -m pytest -p no:cacheprovider -m "long and computing" "$@" </dev/null >"$beside_log" 2>&1 &
        set +m
        beside=$!
        # Not before: what was forked would run it, too, where it is interrupted before pytest is there.
        trap stop_beside EXIT
        echo "test: the computing half of the long group runs beside the rest; what it says comes at the end"
    fi
    if [ -n "$interop" ]; then
        note "$PYTHON" -m pytest -m interop "$@"
    fi
    if [ -n "$long" ]; then
        note "$PYTHON" -m pytest -m "long and not computing" "$@"
        note finish_beside
    fi
    exit "$worst"
}

# note COMMAND...: runs it and keeps the worst code of all: a failure, else 0 where some tests were run.
note() {
    local code=0
    "$@" || code=$?
    case "$code" in
    "$INTERRUPTED") exit "$code" ;;
    "$NO_TESTS") ;;
    0) [ "$worst" -ne "$NO_TESTS" ] || worst=0 ;;
    *) worst=$code ;;
    esac
}

# Its code is that of what ran beside; shows what that said, whatever the code.
finish_beside() {
    local code=0
    wait "$beside" || code=$?
    cat "$beside_log"
    return "$code"
}

# However the script ends, what it started ends, too.
stop_beside() {
    kill -INT "$beside" 2>/dev/null && wait "$beside" || true
    rm -f "$beside_log"
}
