# Prints the tour's texts, runs its commands, and cleans up. Sourced by tour.sh.

bold='' plain='' green='' red=''
if [ -t 1 ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m') green=$(printf '\033[32m') red=$(printf '\033[31m')
fi

step_number=0
claims=0
work=''  # The tour's own directory.
hint=''  # A file whose end is shown on failure: a log.

step() {
    step_number=$((step_number + 1))
    printf '\n%s%d. %s%s\n' "$bold" "$step_number" "$1" "$plain"
}

say() { printf '   %s\n' "$@"; }

# Prints what the last commands have shown.
claim() {
    claims=$((claims + 1))
    printf '   %s✓ %s%s\n' "$green" "$1" "$plain"
}

fail() {
    printf '   %s✗ %s%s\n' "$red" "$1" "$plain"
    if [ -n "$hint" ] && [ -s "$hint" ]; then
        printf '   The last lines of %s:\n' "$hint"
        tail -n 20 "$hint" | sed 's/^/     /'
    fi
    printf '\nThe tour ends here: that was not as it should be.\n'
    exit 1
}

# Runs a command line unchanged, and shows it and at most `lines_max` lines of its output. Sets `output` and `code`.
lines_max=12
try() {
    printf '   $ %s\n' "$1"
    output=$(eval "$1" 2>&1)
    code=$?
    show_output
}

show_output() {
    [ -n "$output" ] || return 0
    local count
    count=$(printf '%s\n' "$output" | wc -l)
    printf '%s\n' "$output" | head -n "$lines_max" | sed 's/^/     /'
    if [ "$count" -gt "$lines_max" ]; then printf '     … (%d more lines)\n' $((count - lines_max)); fi
}

# Like `try`, but a command that fails ends the tour.
must() {
    try "$1"
    [ "$code" = 0 ] || fail "the command ended with exit code $code"
}

# Fails unless the last output contains a text.
expect() {
    case $output in
    *"$1"*) ;;
    *) fail "expected: $1" ;;
    esac
}

# Fails unless two texts are equal.
same() { [ "$1" = "$2" ] || fail "expected '$2', got '$1'"; }

# Waits until a command succeeds, for at most 30 seconds.
wait_until() {
    local tries=0
    until eval "$1" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "waited 30 seconds for: $1"
        sleep 0.05
    done
}

# Sends a signal to a process of the tour, and waits until it exits. Sets `code` to its exit code.
end_process() {
    kill "-$1" "$2" 2>/dev/null
    { wait "$2"; } 2>/dev/null
    code=$?
}

clean_up() {
    local process
    # The shell's list of its child processes that are still running.
    for process in $(jobs -p); do
        kill -KILL "$process" 2>/dev/null
        { wait "$process"; } 2>/dev/null
    done
    cd /
    # Remove only a directory that mktemp has created.
    case $work in
    */larder-tour.??????) rm -rf "$work" ;;
    esac
}

begin_tour() {
    trap clean_up EXIT
    trap 'printf "\nInterrupted.\n"; exit 130' INT
    trap 'exit 143' TERM HUP
    begin_seconds=$SECONDS
    printf '%sLarder: a guided tour%s\n' "$bold" "$plain"
    printf 'Package records of this machine, kept by a Swift program, served to other processes.\n'
}
