/// Generates shell completions for a program that has only options. Shells complete file names if a value is a path.
package struct OptionCompletions: Sendable {
    /// An option of the program.
    package struct Option: Sendable {
        let name: String
        let value: String?
        let help: String

        /// - Parameters:
        ///   - name: the option's name, with its dashes.
        ///   - value: the name of the option's value in the help; nil for an option without a value.
        ///   - help: the help text. Shells show only the text before the first colon, semicolon or parenthesis.
        package init(name: String, value: String?, help: [String]) {
            self.name = name
            self.value = value
            self.help = help.joined(separator: " ")
        }

        var takesPath: Bool { ["PATH", "FILE", "DIRECTORY"].contains(value) }

        /// A short description that can be used within single quotes and brackets.
        var summary: String {
            help.prefix { $0 != ";" && $0 != "(" && $0 != ":" }.trimmed
                .replacing("'", with: "’").replacing("[", with: "(").replacing("]", with: ")")
        }
    }

    private let program: String
    private let options: [Option]

    package init(program: String, _ options: [Option]) {
        self.program = program
        self.options = options
    }

    package var bash: String {
        """
        # Generated from the table of options by `make docs`.
        _\(program)() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
            case $previous in
            \(options.filter(\.takesPath).map(\.name).joined(separator: " | ")))
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
                compopt -o filenames 2>/dev/null
                return ;;
            esac
            mapfile -t COMPREPLY < <(compgen -W '\(options.map(\.name).joined(separator: " "))' -- "$current")
        }
        complete -F _\(program) \(program)

        """
    }

    package var zsh: String {
        let items = options.map { option in
            let takes = option.value.map { ":\($0):" + (option.takesPath ? "_files" : "") } ?? ""
            return "'\(option.name)[\(option.summary)]\(takes)'"
        }
        return """
            #compdef \(program)
            # Generated from the table of options by `make docs`.
            _arguments \\
                \(items.joined(separator: " \\\n    "))

            """
    }

    package var fish: String {
        options.reduce("# Generated from the table of options by `make docs`.\ncomplete -c \(program) -f\n") {
            text, option in
            let takes = option.value == nil ? "" : option.takesPath ? " -r -F" : " -x"
            return text + "complete -c \(program) -l \(option.name.dropFirst(2))\(takes) -d '\(option.summary)'\n"
        }
    }

    /// Returns the completion script for a shell; nil if the shell is not supported.
    package func text(for shell: String) -> String? {
        switch shell {
        case "bash": bash
        case "zsh": zsh
        case "fish": fish
        default: nil
        }
    }
}

extension Substring {
    fileprivate var trimmed: String { String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) }
}
