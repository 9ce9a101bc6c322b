# Generated from the table of options by `make docs`.
_larderweb() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} isValue=
    [[ $current == = ]] && isValue=1 current=
    [[ $previous == = ]] && isValue=1 previous=${COMP_WORDS[COMP_CWORD - 2]}
    case $previous in
    --token-file | --history | --socket | --password-file)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        compopt -o filenames 2>/dev/null
        return ;;
    --listen | --socket-group | --host | --max-connections | --request-timeout | --trust-user | --log-level | --log-format | --completion) return ;;
    esac
    [[ $isValue ]] && return
    mapfile -t COMPREPLY < <(compgen -W '--listen --socket-group --token-file --host --allow-changes --history --max-connections --request-timeout --socket --password-file --trust-user --log-level --log-format --completion --manual --help --version' -- "$current")
}
complete -F _larderweb larderweb
