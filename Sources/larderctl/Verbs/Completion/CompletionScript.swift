/// The scripts that shells load to complete larderctl's command lines. They call `larderctl completion -- WORD…`.
///
/// That call prints one line for each completion, with a note after a tab, or the single line `:files` for file names.
enum CompletionScript {
    static let all: KeyValuePairs<String, String> = ["bash": bashText, "zsh": zshText, "fish": fishText]

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

extension Verb {
    static let completion = Verb(
        "completion", "SHELL", "print the completion of larderctl for bash, zsh or fish",
        details: """
            For this session: source <(larderctl completion bash), larderctl completion fish | source. For all sessions:
            bash, /etc/bash_completion.d/larderctl; fish, ~/.config/fish/completions/larderctl.fish; zsh, the file
            _larderctl in a directory of $fpath. Packages install these files.
            Completes verbs, options, commands (in capitals), and the databases, keys and settings (CONFIG) of a running
            daemon, for which it waits up to half a second. Keys with control characters, and keys that are not UTF-8,
            are skipped.
            """,
        argumentCount: 1...Int.max
    ) { arguments, context in
        let name = arguments.words.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        // The shell's script calls this verb with `--` and the words of a command line, at least an empty one.
        if arguments.endsOptions {
            switch CommandLineCompletion(arguments.words).candidates {
            case .files: context.output.line(":files")
            case .words(let words):
                for (word, note) in words { context.output.line(note.isEmpty ? word : "\(word)\t\(note)") }
            }
            return .done
        }
        guard arguments.words.count == 1 else { throw UsageError("too many arguments: larderctl completion SHELL") }
        guard let script = CompletionScript.all.first(where: { $0.key == name }) else {
            let names = CompletionScript.all.map(\.key).joined(separator: ", ")
            throw UsageError("no completion for '\(name)': only for \(names)")
        }
        context.output.line(script.value)
        return .done
    }
}
