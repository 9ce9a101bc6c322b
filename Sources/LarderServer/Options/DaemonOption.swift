import LarderEngine
import Platform

/// One of larderd's options: how it is parsed, its help, and its names in CONFIG.
package struct DaemonOption: Sendable {
    /// How the value is given.
    enum Form: Sendable {
        /// The option has no value.
        case flag
        /// `--name VALUE` or `--name=VALUE`.
        case value
        /// `--name=VALUE` only: without a value the name is another option.
        case attached
    }

    /// Throws ``DaemonCommandLine/Failure`` only. Untyped, because closures would have to repeat the type.
    typealias Take = @Sendable (inout DaemonCommandLine, OptionValue) throws -> Void

    package let name: String
    let form: Form
    /// The name of the value in the help; empty for a flag.
    package let valueName: String
    /// Lines of at most 100 characters.
    package let help: [String]
    /// The value that CONFIG shows.
    let settings: [Setting]
    let take: Take

    /// An option with a value.
    init(_ name: String, _ valueName: String, _ help: [String], settings: [Setting] = [], take: @escaping Take) {
        self.init(name, .value, valueName, help, settings, take)
    }

    init(
        flag name: String, _ help: [String], settings: [Setting] = [],
        take: @escaping @Sendable (inout DaemonCommandLine) throws -> Void
    ) {
        self.init(name, .flag, "", help, settings) { line, _ in try take(&line) }
    }

    init(attached name: String, _ valueName: String, _ help: [String], take: @escaping Take) {
        self.init(name, .attached, valueName, help, [], take)
    }

    private init(
        _ name: String, _ form: Form, _ valueName: String, _ help: [String], _ settings: [Setting],
        _ take: @escaping Take
    ) {
        self.name = name
        self.form = form
        self.valueName = valueName
        self.help = help
        self.settings = settings
        self.take = take
    }

    /// The form on the command line: `--memory BYTES`.
    package var usage: String {
        switch form {
        case .flag: name
        case .value: "\(name) \(valueName)"
        case .attached: "\(name)=\(valueName)"
        }
    }

    /// Its names in CONFIG, and whether CONFIG SET can change it.
    package var settingNames: [(name: String, isChangeable: Bool)] { settings.map { ($0.name, $0.isChangeable) } }

    /// The options in the form in which `--help` prints them.
    package static func helpLines(_ options: [DaemonOption]) -> [String] {
        let column = 19
        return options.flatMap { option in
            let usage = option.usage
            let indent = "  " + String(repeating: " ", count: column)
            guard usage.count < column else { return ["  " + usage] + option.help.map { indent + $0 } }
            let first = "  " + usage + String(repeating: " ", count: column - usage.count) + option.help[0]
            return [first] + option.help.dropFirst().map { indent + $0 }
        }
    }

    /// The help of all options, one group after the other.
    package static var helpText: String {
        [serving, purging, telling].map { helpLines($0).joined(separator: "\n") }.joined(separator: "\n\n")
    }
}

/// The text that was given for an option, and its conversions. Each throws what is wrong with the text, after the
/// option's name.
struct OptionValue {
    let option: String
    let text: String

    typealias Failure = DaemonCommandLine.Failure

    func oneOf<Value>(_ rule: String, _ parse: (String) -> Value?) throws(Failure) -> Value {
        guard let parsed = parse(text) else {
            throw Failure("\(option) \(text): it is one of \(rule)")
        }
        return parsed
    }

    func byteCount(least: Int = 0) throws(Failure) -> Int {
        guard let bytes = DaemonCommandLine.bytes(text), bytes >= least else {
            let range = least == 0 ? "up to 1T" : "from \(least) to 1T"
            throw Failure("\(option) \(text): it is \(ByteCount.rule), \(range)")
        }
        return bytes
    }

    func path() throws(Failure) -> String {
        guard !text.isEmpty else {
            throw Failure("\(option) needs a path")
        }
        return text
    }

    func number(_ range: ClosedRange<Int>) throws(Failure) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw Failure(
                "\(option) \(text): it is a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func events() throws(Failure) -> String {
        guard Notifier.isValid(text) else {
            throw Failure("\(option) \(text): \(Notifier.eventsError)")
        }
        return text
    }

    func databaseName() throws(Failure) -> String {
        guard DatabaseName.isValid(text) else {
            throw Failure("\(option)=\(text): not a database name: \(DatabaseName.rule)")
        }
        return text
    }

    /// The first line of a file.
    func password() throws(Failure) -> [UInt8] {
        var bytes: [UInt8]?
        do throws(FileError) { bytes = try FileSystem.read(text) } catch {
            throw Failure("\(option): \(error)")
        }
        guard let bytes else { throw Failure("\(option) \(text): there is no such file") }
        let line = Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D })
        guard !line.isEmpty else {
            throw Failure("\(option) \(text): its first line must be the password")
        }
        return line
    }
}
