import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// A fast implementation of the commands that are typical for counters, locks and rate limits. It supports their usual
/// forms, on a few entries in memory. The results are those of the commands' handlers, which run all other calls.
struct QuickCommands {
    let entries: Update

    /// The most keys, and the length in bytes of the longest value that is stored or copied.
    static let keysMax = 8
    private static let valueBytesMax = 64 << 10

    /// The row of a command that this type implements; nil for other commands. GET is implemented for scripts only:
    /// alone, it has a faster path.
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
    /// - Returns: false if the key was not added, because it is too long, was added before, or there are too many keys.
    func add(_ key: UnsafeRawBufferPointer) -> Bool { entries.count < Self.keysMax && entries.add(key) }

    /// Runs a command if its key is one of ``entries``.
    /// - Parameter words: the words of the command, beginning with its name.
    /// - Returns: the command that has run; nil if nothing was done, so that its handler must run.
    func call(
        _ words: UnsafeBufferPointer<larder_script_word>, _ answer: inout larder_script_answer
    ) -> CommandMetadata? {
        guard words.count >= 2 else { return nil }
        let name = ShortWord(UnsafeRawBufferPointer(words[0]))
        guard let row = Self.row(name), let index = entries.index(of: UnsafeRawBufferPointer(words[1])) else {
            return nil
        }
        entries.origin.tag = row.tag.rawValue
        answer.kind = LARDER_ANSWER_INTEGER
        let isDone =
            switch words.count {
            case 2: run(name, index, &answer)
            case 3 where name != .set: run(name, index, UnsafeRawBufferPointer(words[2]), &answer)
            default: name == .set && set(index, words, &answer)
            }
        return isDone ? row : nil
    }

    /// Runs a command whose only argument is its key.
    /// - Returns: false if nothing was done.
    private func run(_ name: ShortWord, _ index: Int, _ answer: inout larder_script_answer) -> Bool {
        switch name {
        case .get:
            guard let payload = entries.read(index) else {
                answer.kind = LARDER_ANSWER_NULL
                return true
            }
            answer.kind = LARDER_ANSWER_STRING
            answer.bytes = payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
            answer.count = payload.count
        case .del, .unlink: answer.integer = EntryChanges.remove(entries, index) ? 1 : 0
        case .exists: answer.integer = entries.has(index) ? 1 : 0
        case .ttl, .pttl:
            answer.integer =
                entries.has(index)
                ? EntryChanges.remaining(entries.deadline(index), now: entries.now, inSeconds: name == .ttl)
                : EntryChanges.noEntry
        case .incr: return add(1, index, &answer)
        case .decr: return add(-1, index, &answer)
        default: return false
        }
        return true
    }

    /// Runs a command whose arguments are its key and a number.
    /// - Returns: false if nothing was done.
    private func run(
        _ name: ShortWord, _ index: Int, _ word: UnsafeRawBufferPointer, _ answer: inout larder_script_answer
    ) -> Bool {
        guard let value = parseInteger(word) else { return false }
        switch name {
        case .incrby: return add(value, index, &answer)
        case .decrby: return value != .min && add(-value, index, &answer)
        case .expire, .pexpire:
            // For deadlines in the past and invalid numbers, let the handler run.
            guard value > 0, value <= Int64.max / 4000, entries.payload(index)?.count ?? 0 <= Self.valueBytesMax else {
                return false
            }
            let deadline = entries.now + (name == .expire ? value * 1000 : value)
            answer.integer = EntryChanges.expire(entries, index, at: deadline, if: []) ? 1 : 0
            return true
        default: return false
        }
    }

    /// Runs `SET key value`, also with a lifetime or a condition.
    /// - Returns: false if nothing was done, so that the handler must run.
    private func set(
        _ index: Int, _ words: UnsafeBufferPointer<larder_script_word>, _ answer: inout larder_script_answer
    ) -> Bool {
        guard words[2].count <= Self.valueBytesMax else { return false }
        var rule = DeadlineRule.governed
        var (isForAbsent, isForPresent) = (false, false)
        var position = 3
        while position < words.count {
            let word = ShortWord(UnsafeRawBufferPointer(words[position]))
            if word == .nx, !isForPresent {
                isForAbsent = true
            } else if word == .xx, !isForAbsent {
                isForPresent = true
            } else if word == .ex || word == .px, rule == .governed, position + 1 < words.count {
                position += 1
                guard let value = parseInteger(UnsafeRawBufferPointer(words[position])), value > 0,
                    value <= Int64.max / 4000
                else { return false }
                rule = .own(entries.now + (word == .ex ? value * 1000 : value))
            } else {
                return false
            }
            position += 1
        }
        if isForAbsent || isForPresent, entries.isFresh(index) != isForPresent {
            answer.kind = LARDER_ANSWER_NULL
            return true
        }
        answer.kind = LARDER_ANSWER_OK
        entries.put(index, payload: UnsafeRawBufferPointer(words[2]), rule: rule)
        return true
    }

    private func add(_ amount: Int64, _ index: Int, _ answer: inout larder_script_answer) -> Bool {
        guard let sum = try? EntryChanges.add(amount, entries, index) else { return false }
        answer.integer = sum
        return true
    }
}
