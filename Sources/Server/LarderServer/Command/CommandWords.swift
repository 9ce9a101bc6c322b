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

extension CommandWords {
    var name: String { text(0) }

    func text(_ index: Int) -> String { String(decoding: bytes(index), as: UTF8.self) }

    func array(_ index: Int) -> [UInt8] { [UInt8](bytes(index)) }

    /// Copies of all words.
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
        else {
            throw CommandError("ERR invalid jitter '\(text(index))': must be a percentage from 0 to 100")
        }
        return Int(percent)
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
