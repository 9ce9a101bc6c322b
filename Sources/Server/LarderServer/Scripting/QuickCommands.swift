import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Runs the commands that counters, locks and rate limits typically use, on a few entries in memory. If a call is not
/// possible here, or fails, nothing is done, and the command's planner must handle the call.
struct QuickCommands {
    let entries: Update

    /// The most keys, and the length in bytes of the longest value that is stored or copied.
    static let keysMax = 8
    private static let valueBytesMax = 64 << 10

    /// Returns the row of a command that can run here; nil for other commands. Only scripts call GET here, because GET
    /// outside of scripts has a faster path.
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
    /// - Returns: the command that has run; nil if nothing was done, so that its planner must run.
    func call(_ words: some CommandWords, _ answer: inout larder_script_answer) -> CommandMetadata? {
        guard words.count >= 2 else { return nil }
        let name = ShortWord(words.bytes(0))
        guard let row = Self.row(name), let index = entries.index(of: words.bytes(1)) else { return nil }
        entries.origin.tag = row.tag.rawValue
        let isDone =
            switch name {
            case .get: get(index, words, &answer)
            case .set: set(index, words, &answer)
            default: apply(name, index, words, &answer)
            }
        return isDone ? row : nil
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
            // Setting a deadline copies the value, so the limit for values applies.
            if case .expire = operation, entries.payload(index)?.count ?? 0 > Self.valueBytesMax { return false }
            answer.kind = LARDER_ANSWER_INTEGER
            answer.integer = try operation.apply(entries, index)
            return true
        } catch {
            return false
        }
    }
}
