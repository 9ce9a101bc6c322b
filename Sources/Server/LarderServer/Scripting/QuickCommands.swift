import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The commands used for counters, locks and limits, in their usual forms, on a few entries in memory. The results are
/// the same as those of the commands' handlers, which run all other calls.
struct QuickCommands {
    let entries: Update

    /// The most keys, and the longest value that is copied here, in bytes.
    static let keysMax = 8
    private static let valueBytesMax = 64 << 10

    /// Whether a command is supported here. GET is not, because it has a faster path.
    static func has(_ word: ShortWord) -> Bool {
        switch word {
        case .incr, .incrby, .del, .unlink, .expire, .pexpire, .decr, .decrby, .ttl, .pttl, .set, .exists: true
        default: false
        }
    }

    /// Adds a key. Its bytes must stay valid until the commands have run.
    /// - Returns: false if there are too many keys, the key is too long, or it was already added.
    func add(_ key: UnsafeRawBufferPointer) -> Bool { entries.count < Self.keysMax && entries.add(key) }

    /// Runs a command whose key is one of ``entries``.
    /// - Parameter words: the command's name first.
    /// - Returns: the command that ran; nil if it is left to the usual path.
    func call(
        _ words: UnsafeBufferPointer<larder_script_word>, _ answer: inout larder_script_answer
    ) -> CommandMetadata? {
        let count = words.count
        guard count >= 2 else { return nil }
        let name = ShortWord(UnsafeRawBufferPointer(words[0]))
        guard let index = entries.index(of: UnsafeRawBufferPointer(words[1])) else { return nil }
        if name == .get {
            guard count == 2 else { return nil }
            guard let payload = entries.read(index) else {
                answer.kind = LARDER_ANSWER_NULL
                return .get
            }
            answer.kind = LARDER_ANSWER_STRING
            answer.bytes = payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
            answer.count = payload.count
            return .get
        }
        answer.kind = LARDER_ANSWER_INTEGER
        if count == 2 { return call(name, index, &answer) }
        if name == .set { return set(index, words, &answer) ? .set : nil }
        return count == 3 ? call(name, index, UnsafeRawBufferPointer(words[2]), &answer) : nil
    }

    /// Runs a command with a key and no other arguments.
    private func call(_ name: ShortWord, _ index: Int, _ answer: inout larder_script_answer) -> CommandMetadata? {
        switch name {
        case .del, .unlink:
            answer.integer = EntryChanges.remove(entries, index) ? 1 : 0
            return name == .del ? .del : .unlink
        case .exists:
            answer.integer = entries.has(index) ? 1 : 0
            return .exists
        case .ttl, .pttl:
            answer.integer =
                entries.has(index)
                ? EntryChanges.remaining(entries.deadline(index), now: entries.now, inSeconds: name == .ttl)
                : EntryChanges.noEntry
            return name == .ttl ? .ttl : .pttl
        case .incr: return add(1, index, &answer) ? .incr : nil
        case .decr: return add(-1, index, &answer) ? .decr : nil
        default: return nil
        }
    }

    /// Runs a command with a key and a number.
    private func call(
        _ name: ShortWord, _ index: Int, _ word: UnsafeRawBufferPointer, _ answer: inout larder_script_answer
    ) -> CommandMetadata? {
        guard let value = parseInteger(word) else { return nil }
        switch name {
        case .incrby: return add(value, index, &answer) ? .incrby : nil
        case .decrby: return value != .min && add(-value, index, &answer) ? .decrby : nil
        case .expire, .pexpire:
            // Leave past deadlines and invalid numbers to the handler.
            guard value > 0, value <= Int64.max / 4000, entries.payload(index)?.count ?? 0 <= Self.valueBytesMax else {
                return nil
            }
            let deadline = entries.now + (name == .expire ? value * 1000 : value)
            answer.integer = EntryChanges.expire(entries, index, at: deadline, if: []) ? 1 : 0
            return name == .expire ? .expire : .pexpire
        default: return nil
        }
    }

    /// `SET key value`, optionally with a lifetime and a condition.
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
        let isThere = entries.isFresh(index)
        if isForAbsent && isThere || isForPresent && !isThere {
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
