# larderctl(1) completion for bash: source <(larderctl completion bash)
_larderctl() {
    local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} words=() answer current
    local -a typed
    IFS=$' \t' read -r -a typed <<<"$line"
    [[ $line == *[[:blank:]] ]] && typed+=("")
    current=${typed[${#typed[@]} - 1]}
    mapfile -t answer < <("${typed[0]}" completion -- "${typed[@]:1}" 2>/dev/null | cut -f 1)
    if [[ ${answer[0]} == :files ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
        compopt -o filenames 2>/dev/null
        return
    fi
    local colons=""
    [[ $COMP_WORDBREAKS == *:* && $current == *:* ]] && colons=${current%"${current##*:}"}
    COMPREPLY=()
    for word in "${answer[@]}"; do
        [[ $word == "$current"* ]] && COMPREPLY+=("$(printf '%q' "${word#"$colons"}")")
    done
}
complete -F _larderctl larderctl
