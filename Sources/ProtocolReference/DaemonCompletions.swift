import LarderServer

/// Makes the completion of larderd's command line for shells from the table of options. Values are completed as paths where
/// the option takes one, and to the words that it takes.
package enum DaemonCompletions {
    package static var bash: String {
        """
        # Made from the table of options by `make docs`.
        _larderd() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
            case $previous in
            \(paths.joined(separator: " | ")))
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
                compopt -o filenames 2>/dev/null
                return ;;
            esac
            mapfile -t COMPREPLY < <(compgen -W '\(names.joined(separator: " "))' -- "$current")
        }
        complete -F _larderd larderd

        """
    }

    package static var zsh: String {
        let options = DaemonOption.all.map { option in
            let takes = value(option).map { ":\($0):" + (paths.contains(name(option)) ? "_files" : "") } ?? ""
            return "'\(name(option))[\(quoted(summary(option)))]\(takes)'"
        }
        return """
            #compdef larderd
            # Made from the table of options by `make docs`.
            _arguments \\
                \(options.joined(separator: " \\\n    "))

            """
    }

    package static var fish: String {
        DaemonOption.all.reduce("# Made from the table of options by `make docs`.\ncomplete -c larderd -f\n") {
            let takes = value($1) == nil ? "" : paths.contains(name($1)) ? " -r -F" : " -x"
            return $0 + "complete -c larderd -l \(name($1).dropFirst(2))\(takes) -d '\(quoted(summary($1)))'\n"
        }
    }

    private static var names: [String] { DaemonOption.all.map(name) }

    /// The options whose values are paths.
    private static var paths: [String] {
        DaemonOption.all.filter { ["PATH", "FILE", "DIRECTORY"].contains(value($0)) }.map(name)
    }

    private static func name(_ option: DaemonOption) -> String {
        String(option.usage.prefix { $0 != " " && $0 != "[" && $0 != "=" })
    }

    /// The name of its value; nil for an option without one.
    private static func value(_ option: DaemonOption) -> String? {
        option.usage.firstIndex(of: " ").map { String(option.usage[option.usage.index(after: $0)...]) }
    }

    /// What there is to say in a line.
    private static func summary(_ option: DaemonOption) -> String {
        let text = option.help.joined(separator: " ")
        return String(text.prefix { $0 != ";" && $0 != "(" && $0 != ":" }).trimmed
    }

    /// Within single quotes and brackets.
    private static func quoted(_ text: String) -> String {
        text.replacing("'", with: "").replacing("[", with: "(").replacing("]", with: ")")
    }
}

extension String {
    fileprivate var trimmed: String { String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) }
}
