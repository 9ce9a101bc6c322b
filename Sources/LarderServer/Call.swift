import LarderEngine
import RESP

/// One command being executed: its words, its time, and where its reply goes.
///
/// Confined to the connection's event loop. A handler writes its reply last, so that an error it throws is the only
/// reply.
struct Call {
    let session: Session
    let server: ServerState
    /// The command's one time, in milliseconds since 1970.
    let now: Int64
    /// What the reply has to wait for.
    private(set) var ticket = CommitTicket.none

    init(_ session: Session, _ server: ServerState, now: Int64) {
        self.session = session
        self.server = server
        self.now = now
    }

    mutating func depends(on other: CommitTicket) { if other > ticket { ticket = other } }

    // MARK: Words

    /// Words of the call, the command's name included.
    var count: Int { session.parser.argumentCount }

    /// A word's bytes, valid while the handler runs.
    func bytes(_ index: Int) -> UnsafeRawBufferPointer { session.parser.argument(index) }

    func text(_ index: Int) -> String { String(decoding: bytes(index), as: UTF8.self) }

    func array(_ index: Int) -> [UInt8] { [UInt8](bytes(index)) }

    /// Whether a word is `word` (given in capitals), in any case.
    func isWord(_ index: Int, _ word: StaticString) -> Bool { equalsIgnoringCase(bytes(index), word) }

    func key(_ index: Int) throws(CommandError) -> Key {
        let bytes = bytes(index)
        guard bytes.count <= Key.bytesMax else {
            throw CommandError("ERR key is \(bytes.count) bytes long, the longest is \(Key.bytesMax)")
        }
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

    /// Answers `<command> HELP` from the table.
    func help(_ command: String) {
        guard let spec = CommandTable.find(command) else { return session.replies.nullArray() }
        session.replies.array(count: 2)
        session.replies.simple("\(command) \(spec.syntax)")
        session.replies.simple(spec.summary)
    }

    // MARK: The database

    var database: Database { session.database }

    /// The fresh entry of a key, from the connection's snapshot if it has one open.
    mutating func read(_ key: Key) throws(CommandError) -> Record? {
        let open = try session.snapshot()
        do throws(LarderError) {
            if let open { return try open.snapshot.get(key) }
            let result = try database.read(key, now: now)
            depends(on: result.ticket)
            return result.record
        } catch {
            throw CommandError(error)
        }
    }

    /// The fresh entries of several keys at one instant.
    mutating func read(_ keys: [Key]) throws(CommandError) -> [Record?] {
        let open = try session.snapshot()
        if keys.count == 1 || open != nil {
            var records: [Record?] = []
            for key in keys { records.append(try read(key)) }
            return records
        }
        return try update(keys, loading: true) { update in keys.indices.map { update.current($0) } }
    }

    /// Runs one change of entries; the reply waits until it is committed.
    mutating func update<Result>(
        _ keys: [Key], loading: Bool, _ body: (inout Update) throws(LarderError) -> Result
    ) throws(CommandError) -> Result {
        do throws(LarderError) {
            var result: Result?
            let ticket = try database.perform(keys, loading: loading, now: now) { (update) throws(LarderError) in
                result = try body(&update)
            }
            depends(on: ticket)
            guard let result else { preconditionFailure("the body of an update was not called") }
            return result
        } catch {
            throw CommandError(error)
        }
    }
}

/// Whether `bytes` are `word` (given in capitals), in any case of ASCII letters.
func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    guard bytes.count == word.utf8CodeUnitCount else { return false }
    for index in 0..<bytes.count {
        let byte = bytes[index]
        let upper = byte >= 0x61 && byte <= 0x7A ? byte - 0x20 : byte
        // Inside the static string: `index` is below its count, which equals `bytes.count`.
        if upper != word.utf8Start[index] { return false }
    }
    return true
}

/// A decimal integer as Redis takes it: an optional minus, no plus, no leading zero, no blanks; nil otherwise.
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
        // Summed up below zero, where there is room for one more.
        guard !overflow, !carry else { return nil }
        value = sum
    }
    if isNegative { return value }
    return value == Int64.min ? nil : -value
}
