# Generated from the table of options by `make docs`.
_larderd() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} isValue=
    [[ $current == = ]] && isValue=1 current=
    [[ $previous == = ]] && isValue=1 previous=${COMP_WORDS[COMP_CWORD - 2]}
    case $previous in
    --config | --dir | --socket | --password-file)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        compopt -o filenames 2>/dev/null
        return ;;
    --socket-mode | --socket-group | --policy | --durability | --memory | --max-disk | --max-change-log | --checkpoint | --threads | --max-clients | --max-databases | --notify-keyspace-events | --max-tracked-keys | --max-subscriber-output | --max-output | --max-reply | --max-transaction | --script-time-limit | --query-scan | --query-time-limit | --max-script-memory | --max-scripts | --max-watched-keys | --max-leases | --max-subscriptions | --reply-timeout | --disable-commands | --origin-limit | --origin-heartbeat | --origin-heartbeat-limit | --origin-patience | --max-origin-keys | --allow-uid | --allow-gid | --rights | --timeout | --slowlog-log-slower-than | --slowlog-max-len | --latency-monitor-threshold | --log-level | --log-format) return ;;
    esac
    [[ $isValue ]] && return
    mapfile -t COMPREPLY < <(compgen -W '--config --check-config --dir --socket --socket-mode --socket-group --policy --durability --memory --max-disk --max-change-log --checkpoint --threads --max-clients --max-databases --notify-keyspace-events --max-tracked-keys --max-subscriber-output --max-output --max-reply --max-transaction --script-time-limit --query-scan --query-time-limit --max-script-memory --max-scripts --max-watched-keys --max-leases --max-subscriptions --reply-timeout --password-file --disable-commands --enable-debug --origin-limit --origin-heartbeat --origin-heartbeat-limit --origin-patience --max-origin-keys --allow-uid --allow-gid --rights --timeout --slowlog-log-slower-than --slowlog-max-len --latency-monitor-threshold --log-level --log-format --purge --purge --purge-expired --check --check --repair --help --version' -- "$current")
}
complete -F _larderd larderd
