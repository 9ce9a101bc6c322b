import LarderPlatform
import LarderVocabulary

/// The value of an option, and conversions to other types. Conversion errors begin with the option's name.
package struct OptionValue: Sendable {
    /// The option's name: `--memory` on the command line, `memory` in a configuration file and in CONFIG SET.
    package let option: String
    /// The value, which need not be text; nil if there is none.
    package let bytes: [UInt8]?

    package init(option: String, bytes: [UInt8]?) { (self.option, self.bytes) = (option, bytes) }

    package init(option: String, text: String) { self.init(option: option, bytes: Array(text.utf8)) }

    /// The value as text; empty if there is none.
    package var text: String { String(decoding: bytes ?? [], as: UTF8.self) }

    /// Returns an error with the rule that the value violates.
    package func error(_ rule: String) -> UsageError { UsageError("\(option) \(text.isEmpty ? "''" : text): \(rule)") }

    /// Converts the text with `parse`, which returns nil if the text is invalid.
    /// - Parameter rule: a description of valid texts for the error message.
    package func parsed<Value>(_ rule: String, _ parse: (String) -> Value?) throws(UsageError) -> Value {
        guard let parsed = parse(text) else { throw error("must be \(rule)") }
        return parsed
    }

    /// Converts the text with `parse`, which returns nil if the text is not one of the valid words.
    /// - Parameter words: the valid words, for the error message.
    package func oneOf<Value>(_ words: String, _ parse: (String) -> Value?) throws(UsageError) -> Value {
        try parsed("one of \(words)", parse)
    }

    package func byteCount(least: Int = 0) throws(UsageError) -> Int {
        let range = least == 0 ? "up to 1T" : "from \(least) to 1T"
        return try parsed("\(ByteCount.rule), \(range)") {
            ByteCount.parse($0, letters: .binary).flatMap { (Int64(least)...1 << 40).contains($0) ? Int($0) : nil }
        }
    }

    /// Parses a time span: a whole number with a unit. If the text has no unit, `unit` applies. The result and `range`
    /// are in that unit.
    /// - Parameter besides: a description of other valid texts, for the error message.
    package func time(
        _ unit: TimeSpan.Unit, _ range: ClosedRange<Int64>, besides: String = ""
    ) throws(UsageError) -> Int64 {
        try parsed("\(besides)\(TimeSpan.rule(unit)), from \(range.lowerBound) to \(range.upperBound)") {
            TimeSpan.parse($0, unit: unit).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    package func number(_ range: ClosedRange<Int>) throws(UsageError) -> Int {
        try parsed("a number from \(range.lowerBound) to \(range.upperBound)") {
            Int($0).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    package func path() throws(UsageError) -> String {
        guard !text.isEmpty else { throw UsageError("\(option) needs a path") }
        return text
    }

    /// Returns the text. Throws if it is missing, empty or not UTF-8.
    package func checkedText() throws(UsageError) -> String {
        guard let bytes, !bytes.isEmpty, let text = String(validating: bytes, as: UTF8.self) else {
            throw UsageError("\(option) needs a value that is text and not empty")
        }
        return text
    }

    /// Returns the ID of a group, which may be given by name or by number.
    package func group() throws(UsageError) -> gid_t { try found("group") { Group.number(of: $0) } }

    /// Returns the ID of a user, who may be given by name or by number.
    package func user() throws(UsageError) -> uid_t { try found("user") { User.number(of: $0) } }

    private func found(_ kind: String, _ lookUp: (String) -> UInt32?) throws(UsageError) -> UInt32 {
        if let number = UInt32(text), text.first != "+" { return number }
        guard let number = lookUp(text) else { throw error("there is no such \(kind)") }
        return number
    }

    /// Reads the file that the option names, and returns its first line.
    package func firstLine() throws(UsageError) -> [UInt8] {
        var bytes: [UInt8]?
        do throws(FileError) { bytes = try FileSystem.read(text) } catch { throw UsageError("\(option): \(error)") }
        guard let bytes else { throw error("there is no such file") }
        return Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D })
    }

    /// Reads a password from the first line of the file that the option names.
    package func password() throws(UsageError) -> [UInt8] {
        let line = try firstLine()
        guard !line.isEmpty else { throw error("the first line must be the password, but is empty") }
        return line
    }
}

/// An error in a command line or a configuration file. The message shows the correct form.
package struct UsageError: Error, CustomStringConvertible {
    package let message: String
    /// Whether all errors are in the configuration file.
    package let isOfFile: Bool

    package init(_ message: String, isOfFile: Bool = false) { (self.message, self.isOfFile) = (message, isOfFile) }

    package var description: String { message }
}

/// Checks the access rights of password files.
package enum PasswordFile {
    /// Returns a warning for each way in which other users can read or change the file.
    /// - Parameters:
    ///   - path: the path of the file; empty if there is none.
    ///   - program: the name, for the warnings, of the program that reads the file.
    /// - Returns: one line for each warning; none if the file cannot be checked.
    package static func warnings(_ path: String, program: String) -> [String] {
        var status = stat()
        guard !path.isEmpty, stat(path, &status) == 0 else { return [] }
        var warnings: [String] = []
        // Root can read and change any file.
        if status.st_uid != 0, status.st_uid != geteuid() {
            warnings.append(
                "the password file \(path) belongs to another user (uid \(status.st_uid)), who can change it: chown it to "
                    + "root or to the user that runs \(program) (\(geteuid()))")
        }
        if status.st_mode & 0o002 != 0 {
            warnings.append("all users can write to the password file \(path): chmod o-rw")
        } else if status.st_mode & 0o004 != 0 {
            warnings.append("all users can read the password file \(path): chmod o-r")
        }
        if status.st_mode & 0o022 == 0o020 {
            warnings.append(
                "the group with gid \(status.st_gid) can write to the password file \(path): chmod g-w")
        }
        return warnings
    }
}
