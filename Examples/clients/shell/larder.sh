#!/bin/sh
# Sends a command to larderd, using only a socket tool: nc (of netcat-openbsd) or socat.
#
#   larder.sh SOCKET COMMAND [ARGUMENT…]        larder.sh larder.sock SET greeting 'hello, world' EX 60
#
# Words are sent with their lengths, so they may contain spaces, quotes and line breaks. Prints the daemon's reply: a
# string unchanged, the elements of an array one per line. Exit codes: 0 success, 1 the reply is an error or null,
# 2 wrong usage, 3 no daemon.
#
# Plain words need no script: the daemon also accepts a line of words.
#
#   printf 'GET greeting\r\n' | nc -N -U larder.sock

# Lengths are counted in bytes.
LC_ALL=C
export LC_ALL

if [ $# -lt 2 ]; then
    echo "usage: larder.sh SOCKET COMMAND [ARGUMENT…]" >&2
    exit 2
fi
socket=$1
shift

request() {
    printf '*%d\r\n' $#
    for word; do printf '$%d\r\n%s\r\n' ${#word} "$word"; done
}

exchange() {
    if nc -h 2>&1 | grep -q -- '-U'; then
        nc -N -U "$socket"
    else
        socat -t 60 - "UNIX-CONNECT:$socket"
    fi
}

# Reads one line; its end is CR LF.
read_line() { IFS= read -r line && line=${line%"$(printf '\r')"}; }

# Reads one reply from standard input and prints it. With the argument `element`, null is an empty line. `read` and `head`
# must not read more bytes than requested, because the next reply follows.
print_reply() {
    read_line || return 3
    rest=${line#?}
    case $line in
    +* | :*) printf '%s\n' "$rest" ;;
    -*)
        printf '%s\n' "$rest" >&2
        return 1
        ;;
    '$-1' | '*-1')
        [ "$1" != element ] || echo
        return 1
        ;;
    \$*)
        head -c "$rest"
        printf '\n'
        read_line
        ;;
    \**)
        # A nested array would overwrite the counter, so read it in a subshell.
        (
            count=$rest
            while [ "$count" -gt 0 ]; do
                print_reply element || [ $? -eq 1 ] && count=$((count - 1)) || exit 3
            done
        )
        ;;
    *)
        echo "larder.sh: not understood: $line" >&2
        return 3
        ;;
    esac
}

request "$@" | exchange | print_reply
