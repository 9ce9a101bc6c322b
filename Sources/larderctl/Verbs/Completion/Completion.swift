extension Verb {
    static let completion: Verb = Verb(
        name: "completion", synopsis: "SHELL",
        summary: "print the completion of larderctl for bash, zsh or fish",
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
        guard arguments.words.count == 1, let script = CompletionScript(rawValue: name) else {
            let names = CompletionScript.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("no completion for '\(name)': only for \(names)")
        }
        context.output.line(script.text)
        return .done
    }
}
