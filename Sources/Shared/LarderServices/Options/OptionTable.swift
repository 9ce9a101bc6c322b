import LarderVocabulary

/// The options of a program. Parses command lines, and generates the completions of shells.
package struct OptionTable<Target>: Sendable {
    package typealias Row = OptionRow<Target>
    /// An option of a command line. `index` is that of its row.
    package typealias Parsed = (index: Int, row: Row, value: OptionValue)

    private let program: String
    package let rows: [Row]
    private let removed: [String: String]

    /// - Parameter removed: options of earlier versions, and what their users must do now.
    package init(_ program: String, _ rows: [Row], removed: [String: String] = [:]) {
        (self.program, self.rows, self.removed) = (program, rows, removed)
    }

    // MARK: Command lines

    /// Takes the first option from the words of a command line that has only options.
    /// - Returns: nil if there are no words left.
    package func next(_ words: inout ArraySlice<[UInt8]>) throws(UsageError) -> Parsed? {
        guard let word = words.first else { return nil }
        if let option = try takeOption(&words) { return option }
        if word.first == Self.dash { throw unknown(&words, "") }
        words.removeFirst()
        throw UsageError("unexpected word '\(printableKey(word))': \(program) takes only options")
    }

    private static var dash: UInt8 { UInt8(ascii: "-") }

    /// Takes an option from the beginning of some words: `--name`, `--name VALUE` or `--name=VALUE`.
    /// - Parameter hint: a text to append to the error about an unknown option.
    /// - Returns: nil if the first word is not an option. `-`, `-5` and `--` are ordinary words.
    package func takeOption(_ words: inout ArraySlice<[UInt8]>, hint: String = "") throws(UsageError) -> Parsed? {
        guard let word = words.first else { return nil }
        let (name, attached) = Self.parts(word)
        let named = rows.indices.filter { rows[$0].name == name || rows[$0].short == name }
        guard let index = named.first(where: { (rows[$0].form == .attached) == (attached != nil) }) ?? named.first
        else {
            guard word.starts(with: [Self.dash, Self.dash]), word.count > 2 else { return nil }
            throw unknown(&words, hint)
        }
        words.removeFirst()
        let row = rows[index]
        if row.form == .flag, attached != nil { throw UsageError("\(row.name) takes no value") }
        var value = attached
        if row.form == .value || row.form == .attached {
            value = attached ?? words.popFirst()
            guard value != nil else { throw UsageError("\(row.name) needs a value: \(row.usage)") }
        }
        return (index, row, OptionValue(option: row.name, bytes: value))
    }

    /// Splits a word into the name of an option and the value after the first equals sign.
    package static func parts(_ word: [UInt8]) -> (name: String, value: [UInt8]?) {
        let equals = word.firstIndex(of: UInt8(ascii: "="))
        return (
            String(decoding: word[..<(equals ?? word.endIndex)], as: UTF8.self), equals.map { Array(word[($0 + 1)...]) }
        )
    }

    /// Removes an unknown option, and the word that may be its value.
    private func unknown(_ words: inout ArraySlice<[UInt8]>, _ hint: String) -> UsageError {
        let (name, attached) = Self.parts(words.removeFirst())
        if attached == nil, let next = words.first, next.first != Self.dash { words.removeFirst() }
        if let advice = removed[name] { return UsageError("\(name) was removed: \(advice)") }
        let near = Suggestion.text(for: name, among: rows.map(\.name))
        return UsageError("unknown option \(printableKey(name.utf8))\(near)\(hint)")
    }

    // MARK: Completion

    /// Returns the completion script for a shell; nil if the shell is not supported.
    package func completion(for shell: String) -> String? {
        switch shell {
        case "bash": bash
        case "zsh": zsh
        case "fish": fish
        default: nil
        }
    }

    private var bash: String {
        func names(_ isIncluded: (Row) -> Bool) -> String {
            rows.filter(isIncluded).map(\.name).joined(separator: " | ")
        }
        // Bash makes the equals sign of --name=VALUE a word of its own.
        return """
            # Generated from the table of options by `make docs`.
            _\(program)() {
                local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} isValue=
                [[ $current == = ]] && isValue=1 current=
                [[ $previous == = ]] && isValue=1 previous=${COMP_WORDS[COMP_CWORD - 2]}
                case $previous in
                \(names(\.takesPath)))
                    mapfile -t COMPREPLY < <(compgen -f -- "$current")
                    compopt -o filenames 2>/dev/null
                    return ;;
                \(names { $0.takesNextWord && !$0.takesPath })) return ;;
                esac
                [[ $isValue ]] && return
                mapfile -t COMPREPLY < <(compgen -W '\(rows.map(\.name).joined(separator: " "))' -- "$current")
            }
            complete -F _\(program) \(program)

            """
    }

    private var zsh: String {
        let items = rows.map { row in
            let value = row.takesNextWord ? ":\(row.value ?? ""):" + (row.takesPath ? "_files" : "") : ""
            return "'\(row.name)[\(Self.summary(row))]\(value)'"
        }
        return """
            #compdef \(program)
            # Generated from the table of options by `make docs`.
            _arguments \\
                \(items.joined(separator: " \\\n    "))

            """
    }

    private var fish: String {
        rows.reduce("# Generated from the table of options by `make docs`.\ncomplete -c \(program) -f\n") { text, row in
            let value = row.takesPath ? " -r -F" : row.takesNextWord ? " -x" : ""
            return text + "complete -c \(program) -l \(row.key)\(value) -d '\(Self.summary(row))'\n"
        }
    }

    /// Returns the help up to the first colon, semicolon or parenthesis, for use within single quotes and brackets.
    private static func summary(_ row: Row) -> String {
        var text = String(row.help.joined(separator: " ").prefix { !";(:".contains($0) })
        while text.last == " " { text.removeLast() }
        return text.replacing("'", with: "’").replacing("[", with: "(").replacing("]", with: ")")
    }
}
