import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The commands used for counters, locks and limits, in their usual forms, on a few entries in memory. The results are
/// the same as those of the commands' handlers, which run all other calls.
///
/// Used by one thread at a time. `@unchecked Sendable`: it is passed between threads as a value.
final class QuickCommands: @unchecked Sendable {
    let entries = BatchScope()
    private var now: Int64 = 0
    private let digits = UnsafeMutableRawPointer.allocate(byteCount: DecimalText.lengthMax, alignment: 1)

    deinit { digits.deallocate() }

    /// Whether a command is supported here. GET and EXISTS are not, because they have a faster path.
    static func has(_ word: ShortWord) -> Bool {
        switch word {
        case .incr, .incrby, .del, .unlink, .expire, .pexpire, .decr, .decrby, .ttl, .pttl, .set: true
        default: false
        }
    }

    /// Prepares for another call.
    func begin(now: Int64) {
        self.now = now
        entries.begin()
    }

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
            answer.integer = entries.remove(index) ? 1 : 0
            return name == .del ? .del : .unlink
        case .exists:
            answer.integer = entries.read(index) == nil ? 0 : 1
            return .exists
        case .ttl:
            let left = millisecondsLeft(index)
            answer.integer = left < 0 ? left : (left + 500) / 1000
            return .ttl
        case .pttl:
            answer.integer = millisecondsLeft(index)
            return .pttl
        case .incr: return add(1, index, &answer) ? .incr : nil
        case .decr: return add(-1, index, &answer) ? .decr : nil
        default: return nil
        }
    }

    /// Like PTTL: -2 without an entry, -1 without a deadline.
    private func millisecondsLeft(_ index: Int) -> Int64 {
        guard entries.read(index) != nil else { return -2 }
        return entries.deadline(index).map { max(0, $0 - now) } ?? -1
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
            guard value > 0, value <= Int64.max / 4000, !entries.hasTags(index) else { return nil }
            let row: CommandMetadata = name == .expire ? .expire : .pexpire
            guard entries.current(index) != nil else {
                answer.integer = 0
                return row
            }
            answer.integer = 1
            return entries.expire(index, at: now + (name == .expire ? value * 1000 : value)) ? row : nil
        default: return nil
        }
    }

    /// `SET key value`, optionally with a lifetime and a condition.
    private func set(
        _ index: Int, _ words: UnsafeBufferPointer<larder_script_word>, _ answer: inout larder_script_answer
    ) -> Bool {
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
                rule = .own(now + (word == .ex ? value * 1000 : value))
            } else {
                return false
            }
            position += 1
        }
        let isThere = entries.current(index) != nil
        if isForAbsent && isThere || isForPresent && !isThere {
            answer.kind = LARDER_ANSWER_NULL
            return true
        }
        answer.kind = LARDER_ANSWER_OK
        return entries.put(index, UnsafeRawBufferPointer(words[2]), rule: rule)
    }

    private func add(
        _ amount: Int64, _ index: Int, _ answer: inout larder_script_answer
    ) -> Bool {
        var value: Int64 = 0
        if let payload = entries.current(index) {
            guard let parsed = parseInteger(payload), !entries.hasTags(index) else { return false }
            value = parsed
        }
        let (sum, overflows) = value.addingReportingOverflow(amount)
        guard !overflows else { return false }
        answer.integer = sum
        let count = DecimalText.write(sum, to: digits)
        return entries.put(index, UnsafeRawBufferPointer(start: digits, count: count), keepsLife: true)
    }
}
