import LarderEngine
import LarderPlatform

/// The text of an option's value, and conversions to other types. Conversion errors begin with the option's name.
struct OptionValue {
    /// The option's name, as the user wrote it: `--memory` on the command line, `memory` in the file and in CONFIG SET.
    let option: String
    let text: String

    typealias Failure = OptionFailure

    /// Converts the text with `parse`, which returns nil if the text is invalid.
    /// - Parameter rule: a description of valid texts for the error message.
    func parsed<Value>(_ rule: String, _ parse: (String) -> Value?) throws(Failure) -> Value {
        guard let parsed = parse(text) else { throw Failure("\(option) \(text): must be \(rule)") }
        return parsed
    }

    /// Converts the text with `parse`, which returns nil if the text is not one of the valid words.
    /// - Parameter words: the valid words, for the error message.
    func oneOf<Value>(_ words: String, _ parse: (String) -> Value?) throws(Failure) -> Value {
        try parsed("one of \(words)", parse)
    }

    func byteCount(least: Int = 0) throws(Failure) -> Int {
        guard let bytes = Self.bytes(text), bytes >= least else {
            let range = least == 0 ? "up to 1T" : "from \(least) to 1T"
            throw Failure("\(option) \(text): must be \(ByteCount.rule), \(range)")
        }
        return bytes
    }

    /// Parses a number of bytes, at most 1 TiB.
    private static func bytes(_ text: String) -> Int? {
        ByteCount.parse(text, letters: .binary).flatMap { $0 <= 1 << 40 ? Int($0) : nil }
    }

    /// Parses a time span: a whole number with a unit. If the text has no unit, `unit` applies. The result and `range`
    /// are in that unit.
    /// - Parameter besides: a description of other valid texts, for the error message.
    func time(
        _ unit: TimeSpan.Unit, _ range: ClosedRange<Int64>, besides: String = ""
    ) throws(Failure) -> Int64 {
        guard let span = TimeSpan.parse(text, unit: unit), range.contains(span) else {
            throw Failure(
                "\(option) \(text): must be \(besides)\(TimeSpan.rule(unit)), from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return span
    }

    func policy() throws(Failure) -> UpdatePolicy {
        try parsed(UpdatePolicy.typedSyntax) { UpdatePolicy.typed($0) }
    }

    func path() throws(Failure) -> String {
        guard !text.isEmpty else {
            throw Failure("\(option) needs a path")
        }
        return text
    }

    /// Parses a file mode in octal digits. The mode must let the owner read and write.
    func mode() throws(Failure) -> mode_t {
        guard let mode = mode_t(text, radix: 8), mode & 0o600 == 0o600, mode <= 0o777, text.first != "+" else {
            throw Failure("\(option) \(text): must be an octal number such as 660, from 600 to 777")
        }
        return mode
    }

    /// Returns the number of a group, which may be given by name or by number.
    func group() throws(Failure) -> gid_t {
        if let number = gid_t(text), text.first != "+" { return number }
        guard let number = Group.number(of: text) else { throw Failure("\(option) \(text): there is no such group") }
        return number
    }

    func number(_ range: ClosedRange<Int>) throws(Failure) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw Failure(
                "\(option) \(text): must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func events() throws(Failure) -> String {
        guard Notifier.isValid(text) else {
            throw Failure("\(option) \(text): \(Notifier.eventsError)")
        }
        return text
    }

    func commands() throws(Failure) -> CommandSet {
        do throws(CommandSet.Failure) { return try CommandSet(text) } catch {
            throw Failure("\(option): \(error.description)")
        }
    }

    /// Parses access rules.
    /// - Parameter kind: the kind of all rules; nil if each rule contains its own kind.
    func rules(_ kind: AccessRule.Kind?) throws(Failure) -> [AccessRule] {
        do throws(AccessRule.Failure) { return try AccessRule.parse(text, kind) } catch {
            throw Failure("\(option): \(error.description)")
        }
    }

    /// Returns a database's name.
    /// - Parameter orLedger: whether the name of the larder's internal database `LEDGER` is valid too.
    func databaseName(orLedger: Bool = false) throws(Failure) -> String {
        guard DatabaseName.isValid(text) || orLedger && text == DatabaseName.ledger else {
            throw Failure("\(option)=\(text): not a database name: \(DatabaseName.rule)")
        }
        return text
    }

    /// Reads the file that the option names, and returns its first line.
    func password() throws(Failure) -> [UInt8] {
        var bytes: [UInt8]?
        do throws(FileError) { bytes = try FileSystem.read(text) } catch {
            throw Failure("\(option): \(error)")
        }
        guard let bytes else { throw Failure("\(option) \(text): there is no such file") }
        let line = Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D })
        guard !line.isEmpty else {
            throw Failure("\(option) \(text): the first line must be the password, but is empty")
        }
        return line
    }
}
