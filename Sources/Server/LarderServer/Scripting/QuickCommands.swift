import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Runs the commands that counters, locks and rate limits typically use, on a few entries in memory. If a call is not
/// possible here, or fails, nothing is done, and the command's planner must handle the call.
struct QuickCommands {
    let entries: Update

    /// The maximum number of keys of all commands together.
    static let keysMax = 8
    /// The maximum length in bytes of a value that a command stores or copies.
    private static let valueBytesMax = 64 << 10

    /// Returns the row of a command that can run here, otherwise nil. GET outside of scripts has a faster path.
    static func row(_ word: ShortWord) -> CommandMetadata? {
        switch word {
        case .set: .set
        case .get: .get
        case .incr: .incr
        case .incrby: .incrby
        case .decr: .decr
        case .decrby: .decrby
        case .del: .del
        case .unlink: .unlink
        case .exists: .exists
        case .expire: .expire
        case .pexpire: .pexpire
        case .ttl: .ttl
        case .pttl: .pttl
        default: nil
        }
    }

    /// Adds a key that the commands may use. Its bytes must stay valid until the commands have run.
    /// - Returns: false if the key was not added: it is too long, or already added, or there are too many keys.
    func add(_ key: UnsafeRawBufferPointer) -> Bool { entries.count < Self.keysMax && entries.add(key) }

    /// Runs a command if its key is one of ``entries``.
    /// - Parameter row: the command's row, which ``row(_:)`` returned for its name.
    /// - Returns: false if nothing was done, so that the command's planner must run.
    @inline(__always)
    func call(
        _ name: ShortWord, _ row: CommandMetadata, _ words: some CommandWords, _ answer: inout larder_script_answer
    ) -> Bool {
        guard words.count >= 2, let index = entries.index(of: words.bytes(1)) else { return false }
        entries.origin.tag = row.tag.rawValue
        switch name {
        case .get: return get(index, words, &answer)
        case .set: return set(index, words, &answer)
        default: return apply(name, index, words, &answer)
        }
    }

    private func get(_ index: Int, _ words: some CommandWords, _ answer: inout larder_script_answer) -> Bool {
        guard words.count == 2 else { return false }
        guard let payload = entries.read(index) else {
            answer.kind = LARDER_ANSWER_NULL
            return true
        }
        answer.kind = LARDER_ANSWER_STRING
        answer.bytes = payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
        answer.count = payload.count
        return true
    }

    private func set(_ index: Int, _ words: some CommandWords, _ answer: inout larder_script_answer) -> Bool {
        guard words.count >= 3, words.bytes(2).count <= Self.valueBytesMax, let options = try? SetOptions(words),
            options.isSimple
        else { return false }
        let isStored = options.store(words.bytes(2), index, in: entries)
        answer.kind = isStored ? LARDER_ANSWER_OK : LARDER_ANSWER_NULL
        return true
    }

    private func apply(
        _ name: ShortWord, _ index: Int, _ words: some CommandWords, _ answer: inout larder_script_answer
    ) -> Bool {
        do throws(CommandError) {
            guard let operation = try EntryOperation(name, words) else { return false }
            // Setting a deadline copies the value, so its length must not exceed the maximum.
            if case .expire = operation, entries.payload(index)?.count ?? 0 > Self.valueBytesMax { return false }
            answer.kind = LARDER_ANSWER_INTEGER
            answer.integer = try operation.apply(entries, index)
            return true
        } catch {
            return false
        }
    }
}
