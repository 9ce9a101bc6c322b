import LarderVocabulary

/// An option of a program: how it is written, its help, and the parser of its value. Command line, `--help`, manual
/// page and completion are generated from the rows of an ``OptionTable``.
///
/// `Target` is the type that the options fill in.
package struct OptionRow<Target>: Sendable {
    /// How the option's value is written on the command line.
    package enum Form: Sendable {
        /// There is no value.
        case flag
        /// The value is written as `--name VALUE` or `--name=VALUE`.
        case value
        /// The value is written as `--name=VALUE` only; `--name` without a value is a different option.
        case attached
        /// The value is written as `--name=VALUE` only, and can be omitted.
        case optional
    }

    /// Parses and stores a value. Throws ``UsageError``. The type of the error is not declared, because each closure
    /// would have to repeat it.
    package typealias Take = @Sendable (inout Target, OptionValue) throws -> Void

    package let name: String
    /// Another name, such as `-h`; nil for none.
    package let short: String?
    package let form: Form
    /// The placeholder for the value in the help, such as `BYTES`; nil for a flag.
    package let value: String?
    /// The help text, in lines.
    package let help: [String]
    package let take: Take

    package init(
        _ name: String, _ value: String?, _ help: [String], short: String? = nil, form: Form? = nil,
        take: @escaping Take = { _, _ in }
    ) {
        self.name = name
        self.short = short
        self.form = form ?? (value == nil ? .flag : .value)
        self.value = value
        self.help = help
        self.take = take
    }

    package static func telling(help: @escaping Take, version: @escaping Take) -> [OptionRow] {
        [
            OptionRow("--help", nil, ["print this help"], short: "-h", take: help),
            OptionRow("--version", nil, ["print the version"], short: "-V", take: version),
        ]
    }

    /// The option's name in a configuration file: without the dashes.
    package var key: String { String(name.dropFirst(2)) }

    /// The option as written on the command line: `--memory BYTES`.
    package var usage: String {
        let value = value ?? ""
        return switch form {
        case .flag: name
        case .value: "\(name) \(value)"
        case .attached: "\(name)=\(value)"
        case .optional: "\(name)[=\(value)]"
        }
    }

    /// The option with its other name, as shown in the help.
    package var fullUsage: String { short.map { "\($0), \(usage)" } ?? usage }

    /// The option as written in a configuration file: `memory = BYTES`.
    package var fileUsage: String { "\(key) = \(value ?? "yes")" }

    /// Whether the word after the option is its value.
    package var takesNextWord: Bool { form == .value }

    package var takesPath: Bool { takesNextWord && ["PATH", "FILE", "DIRECTORY"].contains(value) }

    /// Stores a value. Adds the option's name to errors of other types.
    package func apply(_ value: OptionValue, to target: inout Target) throws(UsageError) {
        do { try take(&target, value) } catch {
            throw error as? UsageError ?? UsageError("\(value.option): \(error)")
        }
    }

    // MARK: Texts

    /// Returns the lines that `--help` prints for some options.
    /// - Parameter column: where the help texts begin; nil to align them with that of the longest option.
    package static func helpLines(_ rows: [OptionRow], column: Int? = 21) -> [String] {
        let column = column ?? (rows.map(\.fullUsage.count).max() ?? 0) + 4
        return rows.flatMap { row in
            let usage = "  " + row.fullUsage
            let indent = String(repeating: " ", count: column)
            guard usage.count < column else { return [usage] + row.help.map { indent + $0 } }
            let first = usage + indent.dropFirst(usage.count) + (row.help.first ?? "")
            return [first] + row.help.dropFirst().map { indent + $0 }
        }
    }

    package var manualItem: String { ManualPage.item(fullUsage, help) }
}
