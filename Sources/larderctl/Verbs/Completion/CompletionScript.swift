/// The script that a shell loads to complete larderctl's command lines. It calls `larderctl completion -- WORD…`.
///
/// That call prints one line for each completion, with a note after a tab, or the single line `:files` for file names.
enum CompletionScript: String, CaseIterable {
    case bash, zsh, fish

    var text: String {
        switch self {
        case .bash: Self.bashText
        case .zsh: Self.zshText
        case .fish: Self.fishText
        }
    }

    /// Bash treats a colon as the start of a new word, but keys may contain colons. So the script removes the text up
    /// to the last typed colon from each completion.
    private static let bashText = """
        # larderctl(1) completion for bash: source <(larderctl completion bash)
        _larderctl() {
            local IFS=$'\\n' line=${COMP_LINE:0:COMP_POINT} words=() answer current
            local -a typed
            IFS=$' \\t' read -r -a typed <<<"$line"
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
        """

    private static let zshText = """
        #compdef larderctl
        # larderctl(1) completion for zsh
        _larderctl() {
            local -a lines found
            lines=("${(@f)$("${words[1]}" completion -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
            if [[ ${lines[1]} == :files ]]; then
                _files
                return
            fi
            local line
            for line in $lines; do
                [[ -n $line ]] && found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
            done
            _describe 'larderctl' found
        }
        if [ "$funcstack[1]" = "_larderctl" ]; then
            _larderctl "$@"
        else
            compdef _larderctl larderctl
        fi
        """

    private static let fishText = """
        # larderctl(1) completion for fish: larderctl completion fish | source
        function __larderctl_complete
            set -l typed (commandline -opc) (commandline -ct)
            set -l lines (command $typed[1] completion -- $typed[2..-1] 2>/dev/null)
            if test "$lines[1]" = :files
                __fish_complete_path (commandline -ct)
                return
            end
            printf '%s\\n' $lines
        end
        complete -c larderctl -f -a '(__larderctl_complete)'
        """
}
