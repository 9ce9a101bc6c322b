import CLuaBridge
import CommandCatalog
import LarderEngine
import Platform
import RESP

/// What a short script reaches on the fast path: the commands that locks and limits are made of, in their usual forms,
/// on the entries of its declared keys, in memory. Answers are those of the commands' handlers; whatever else a script
/// asks for ends the attempt, before anything was applied, and the usual path begins.
///
/// Belongs to an interpreter, and is used with it by one thread at a time.
final class QuickScriptHost {
    let entries = FewEntries()
    private var now: Int64 = 0
    /// The commands that ran, for the count of commands; those beyond are not counted.
    private(set) var rows: [CommandMetadata] = []
    private let digits = UnsafeMutableRawPointer.allocate(byteCount: DecimalText.lengthMax, alignment: 1)
    /// When the script was asked first whether to go on, in nanoseconds of the monotonic clock; 0 before.
    private var begin: Int64 = 0

    private static let rowsMax = 64

    deinit { digits.deallocate() }

    /// Prepares for a script.
    func begin(now: Int64) {
        self.now = now
        rows.removeAll(keepingCapacity: true)
        begin = 0
        entries.begin()
    }

    /// The functions for the interpreter. Valid while this object is.
    var functions: larder_script_host {
        larder_script_host(
            context: Unmanaged.passUnretained(self).toOpaque(),
            call: { context, words, count, _, answer in
                guard let context, let words, let answer else { return ScriptEnding.abandoned.rawValue }
                let isDone = Unmanaged<QuickScriptHost>.fromOpaque(context)._withUnsafeGuaranteedRef {
                    $0.call(words, count, &answer.pointee)
                }
                return isDone ? 0 : ScriptEnding.abandoned.rawValue
            },
            interrupt: { context in
                guard let context else { return 0 }
                let mustEnd = Unmanaged<QuickScriptHost>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.isTooLong }
                return mustEnd ? ScriptEnding.abandoned.rawValue : 0
            },
            weigh: { _ in ScriptEnding.abandoned.rawValue },
            log: { _, _, _, _ in },
            knows: larder_script_host.knowsCommand, sha1: larder_script_host.hashesText)
    }

    private var isTooLong: Bool {
        let time = MonotonicClock.nanoseconds()
        if begin == 0 { begin = time }
        return time - begin > ScriptSlice.onLoop
    }

    // MARK: Commands

    /// Runs a command.
    /// - Returns: false if it is left to the usual path.
    private func call(
        _ words: UnsafePointer<larder_script_word>, _ count: Int, _ answer: inout larder_script_answer
    ) -> Bool {
        guard count >= 2 else { return false }
        let name = ShortWord(UnsafeRawBufferPointer(words[0]))
        guard let index = entries.index(of: UnsafeRawBufferPointer(words[1])) else { return false }
        if name == .get {
            guard count == 2 else { return false }
            note(.get)
            guard let payload = entries.read(index) else {
                answer.kind = LARDER_ANSWER_NULL
                return true
            }
            answer.kind = LARDER_ANSWER_STRING
            answer.bytes = payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
            answer.count = payload.count
            return true
        }
        answer.kind = LARDER_ANSWER_INTEGER
        if count == 2 { return call(name, index, &answer) }
        if name == .set { return set(index, words, count, &answer) }
        return count == 3 && call(name, index, UnsafeRawBufferPointer(words[2]), &answer)
    }

    /// A command of a key alone.
    private func call(_ name: ShortWord, _ index: Int, _ answer: inout larder_script_answer) -> Bool {
        switch name {
        case .del, .unlink:
            answer.integer = entries.remove(index) ? 1 : 0
            note(name == .del ? .del : .unlink)
        case .exists:
            answer.integer = entries.read(index) == nil ? 0 : 1
            note(.exists)
        case .ttl, .pttl:
            note(name == .ttl ? .ttl : .pttl)
            guard entries.read(index) != nil else {
                answer.integer = -2
                return true
            }
            guard let deadline = entries.deadline(index) else {
                answer.integer = -1
                return true
            }
            let left = max(0, deadline - now)
            answer.integer = name == .ttl ? (left + 500) / 1000 : left
        case .incr: return add(1, index, .incr, &answer)
        case .decr: return add(-1, index, .decr, &answer)
        default: return false
        }
        return true
    }

    /// A command of a key and a number.
    private func call(
        _ name: ShortWord, _ index: Int, _ word: UnsafeRawBufferPointer, _ answer: inout larder_script_answer
    ) -> Bool {
        guard let value = parseInteger(word) else { return false }
        switch name {
        case .incrby: return add(value, index, .incrby, &answer)
        case .decrby: return value != .min && add(-value, index, .decrby, &answer)
        case .expire, .pexpire:
            // Deadlines that have passed, and numbers without a sense, are left to the handler.
            guard value > 0, value <= Int64.max / 4000, !entries.hasTags(index) else { return false }
            note(name == .expire ? .expire : .pexpire)
            guard entries.current(index) != nil else {
                answer.integer = 0
                return true
            }
            answer.integer = 1
            return entries.expire(index, at: now + (name == .expire ? value * 1000 : value))
        default: return false
        }
    }

    /// `SET key value`, with a lifetime and a condition at most.
    private func set(
        _ index: Int, _ words: UnsafePointer<larder_script_word>, _ count: Int, _ answer: inout larder_script_answer
    ) -> Bool {
        var rule = DeadlineRule.governed
        var (isForAbsent, isForPresent) = (false, false)
        var position = 3
        while position < count {
            let word = ShortWord(UnsafeRawBufferPointer(words[position]))
            if word == .nx, !isForPresent {
                isForAbsent = true
            } else if word == .xx, !isForAbsent {
                isForPresent = true
            } else if word == .ex || word == .px, rule == .governed, position + 1 < count {
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
        note(.set)
        let isThere = entries.current(index) != nil
        if isForAbsent && isThere || isForPresent && !isThere {
            answer.kind = LARDER_ANSWER_NULL
            return true
        }
        answer.kind = LARDER_ANSWER_OK
        return entries.put(index, UnsafeRawBufferPointer(words[2]), rule: rule)
    }

    private func add(
        _ amount: Int64, _ index: Int, _ row: CommandMetadata, _ answer: inout larder_script_answer
    ) -> Bool {
        var value: Int64 = 0
        if let payload = entries.current(index) {
            guard let parsed = parseInteger(payload), !entries.hasTags(index) else { return false }
            value = parsed
        }
        let (sum, overflows) = value.addingReportingOverflow(amount)
        guard !overflows else { return false }
        note(row)
        answer.integer = sum
        let count = DecimalText.write(sum, to: digits)
        return entries.put(index, UnsafeRawBufferPointer(start: digits, count: count), keepsLife: true)
    }

    /// Counts a command.
    private func note(_ row: CommandMetadata) { if rows.count < Self.rowsMax { rows.append(row) } }
}

extension larder_script_host {
    static let knowsCommand: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<UInt8>?, Int) -> Bool = {
        _, name, count in
        CommandMetadata.named(Array(UnsafeRawBufferPointer(start: name, count: count))) != nil
    }

    static let hashesText: @convention(c) (UnsafePointer<UInt8>?, Int, UnsafeMutablePointer<CChar>?) -> Void = {
        bytes, count, digits in
        ScriptDigest(of: UnsafeRawBufferPointer(start: bytes, count: count)).write(to: digits)
    }
}

extension ShortWord {
    static let del = ShortWord("del")
    static let unlink = ShortWord("unlink")
    static let ttl = ShortWord("ttl")
    static let pttl = ShortWord("pttl")
    static let incr = ShortWord("incr")
    static let decr = ShortWord("decr")
    static let incrby = ShortWord("incrby")
    static let decrby = ShortWord("decrby")
    static let expire = ShortWord("expire")
    static let pexpire = ShortWord("pexpire")
    static let nx = ShortWord("nx")
    static let xx = ShortWord("xx")
}
