import LarderEngine
import LarderRESP

/// The words of a command, parsed as numbers, keys and options.
protocol CommandWords {
    /// The number of words, including the command's name.
    var count: Int { get }
    /// The command's name, without its subcommand.
    var name: String { get }
    /// The time that the command uses for expiry, in milliseconds since 1970.
    var now: Int64 { get }
    /// How far ``now`` is ahead of the wall clock, in milliseconds; 0 unless the wall clock was set back. Commands that
    /// take or return an instant use this to convert it, because clients use the wall clock. Do not use it elsewhere:
    /// reading the clocks takes time.
    var timeAhead: Int64 { get }

    /// Returns the bytes of a word. The pointer is valid until the command has run.
    func bytes(_ index: Int) -> UnsafeRawBufferPointer
}

/// Reads the options at the end of a command: each is a word, which may be followed by its value.
struct OptionReader<Words: CommandWords> {
    private let words: Words
    private var index: Int

    init(_ words: Words, from first: Int) { (self.words, index) = (words, first) }

    /// Returns the next option, in lower case; nil at the end.
    mutating func next() -> String? {
        guard index < words.count else { return nil }
        defer { index += 1 }
        // Only ASCII: Unicode also has other letters whose lower case is an ASCII letter.
        return String(decoding: words.bytes(index).map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Returns the position of the option's value. Throws if there is none.
    mutating func value() throws(CommandError) -> Int {
        guard index < words.count else { throw .syntax }
        defer { index += 1 }
        return index
    }
}

extension CommandWords {
    var name: String { text(0) }

    func text(_ index: Int) -> String { String(decoding: bytes(index), as: UTF8.self) }

    func array(_ index: Int) -> [UInt8] { [UInt8](bytes(index)) }

    var allWords: [[UInt8]] { (0..<count).map { array($0) } }

    /// Whether a word equals `word`, ignoring case. `word` must be in capitals.
    func isWord(_ index: Int, _ word: StaticString) -> Bool { equalsIgnoringCase(bytes(index), word) }

    func key(_ index: Int) throws(CommandError) -> Key {
        let bytes = bytes(index)
        guard bytes.count <= Key.bytesMax else { throw .tooLongKey(bytes.count) }
        return Key(bytes)
    }

    func keys(from first: Int, step: Int = 1) throws(CommandError) -> [Key] {
        var keys: [Key] = []
        keys.reserveCapacity((count - first + step - 1) / step)
        for index in stride(from: first, to: count, by: step) { keys.append(try key(index)) }
        return keys
    }

    func integer(_ index: Int) throws(CommandError) -> Int64 {
        guard let value = parseInteger(bytes(index)) else { throw .notAnInteger }
        return value
    }

    func policy(_ index: Int) throws(CommandError) -> UpdatePolicy {
        guard let policy = UpdatePolicy(text(index)) else {
            throw CommandError(
                "ERR invalid policy: must be one of \(UpdatePolicy.syntax) from 0.001 to "
                    + "\(UpdatePolicy.longestMilliseconds / 1000)")
        }
        return policy
    }

    /// Parses a grace period in seconds, with or without a fraction. Returns milliseconds.
    func grace(_ index: Int) throws(CommandError) -> Int64 {
        let text = text(index)
        if text == "0" { return 0 }
        guard let milliseconds = UpdatePolicy(text).flatMap(\.intervalMilliseconds), Double(text) != nil else {
            throw CommandError(
                "ERR invalid grace '\(text)': must be a number of seconds from 0 to "
                    + "\(UpdatePolicy.longestMilliseconds / 1000)")
        }
        return milliseconds
    }

    func jitter(_ index: Int) throws(CommandError) -> Int {
        guard let percent = parseInteger(bytes(index)), (0...Int64(Jitter.percentMax)).contains(percent)
        else { throw CommandError("ERR invalid jitter '\(text(index))': must be a percentage from 0 to 100") }
        return Int(percent)
    }

    /// Parses the number of tags at a position, after which the tags follow.
    /// - Returns: the positions of the tags.
    func tagIndices(_ index: Int) throws(CommandError) -> Range<Int> {
        guard index < count, let number = parseInteger(bytes(index)), number > 0, number < count - index else {
            throw CommandError("ERR TAGS needs the number of tags (1 or more), followed by the tags")
        }
        return index + 1..<index + 1 + Int(number)
    }

    func tags(_ indices: Range<Int>) throws(CommandError) -> Tags {
        do throws(TagRules.Impossible) {
            return try Tags(checking: indices.map { array($0) })
        } catch {
            throw CommandError("ERR \(error.message)")
        }
    }

    /// Parses the token of a lease, in the form that FETCH returns.
    func token(_ index: Int) throws(CommandError) -> UInt64 {
        let bytes = bytes(index)
        guard (1...20).contains(bytes.count), bytes.allSatisfy({ (0x30...0x39).contains($0) }),
            let token = UInt64(String(decoding: bytes, as: UTF8.self))
        else { throw CommandError("ERR invalid token: must be the number that FETCH returned") }
        return token
    }

    /// Parses the version of a change in the form that CHANGES returns.
    func version(_ index: Int) throws(CommandError) -> ChangeVersion {
        guard bytes(index).count <= 64, let version = ChangeVersion(text(index)) else {
            throw CommandError(
                "ERR invalid version: must be <milliseconds>-<sequence>, as in CHANGES, or milliseconds since 1970")
        }
        return version
    }
}

extension CommandError {
    /// Returns the error for a subcommand with too many words.
    static func subcommand(_ words: some CommandWords, of command: String) -> CommandError {
        CommandError(
            "ERR unknown subcommand or wrong number of arguments for '", shown(words.bytes(1), 128),
            "'. Try \(command) HELP.")
    }
}

// Functions that read the words of a call.

/// Whether `bytes` equal `word`, ignoring the case of ASCII letters. `word` must be in capitals.
@inline(__always)
func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    bytes.count == word.utf8CodeUnitCount && matches(bytes, word)
}

/// Compares words of equal length as ``equalsIgnoringCase(_:_:)`` does.
private func matches(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    for index in 0..<bytes.count {
        let byte = bytes[index]
        let upper = byte >= 0x61 && byte <= 0x7A ? byte - 0x20 : byte
        // The static string has `bytes.count` bytes, so `index` is valid.
        if upper != word.utf8Start[index] { return false }
    }
    return true
}

/// Parses a decimal integer in the form that Redis accepts: with an optional minus, but without plus, leading zeros or
/// spaces. Returns nil for all other texts.
func parseInteger(_ bytes: UnsafeRawBufferPointer) -> Int64? {
    guard bytes.count > 0, bytes.count <= 20 else { return nil }
    let isNegative = bytes[0] == 0x2D
    let digits = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(isNegative ? 1 : 0))
    guard let first = digits.first else { return nil }
    if first == 0x30 { return digits.count == 1 && !isNegative ? 0 : nil }
    var value: Int64 = 0
    for digit in digits {
        guard digit >= 0x30, digit <= 0x39 else { return nil }
        let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
        let (sum, carry) = shifted.subtractingReportingOverflow(Int64(digit - 0x30))
        // Build the number as a negative one, because the smallest Int64 has no positive counterpart.
        guard !overflow, !carry else { return nil }
        value = sum
    }
    if isNegative { return value }
    return value == Int64.min ? nil : -value
}

/// Returns at most `most` bytes of a word, for use in an error. Stops at the first NUL.
func shown(_ bytes: UnsafeRawBufferPointer, _ most: Int) -> [UInt8] {
    Array(bytes.prefix(most).prefix { $0 != 0 })
}

/// The names of frequent options as integers, which can be compared quickly.
extension ShortWord {
    static var nx: ShortWord { ShortWord(constant: 0x78_6E, length: 2) }
    static var xx: ShortWord { ShortWord(constant: 0x78_78, length: 2) }
    static var ex: ShortWord { ShortWord(constant: 0x78_65, length: 2) }
    static var px: ShortWord { ShortWord(constant: 0x78_70, length: 2) }
    static var exat: ShortWord { ShortWord(constant: 0x74_61_78_65, length: 4) }
    static var pxat: ShortWord { ShortWord(constant: 0x74_61_78_70, length: 4) }
}
