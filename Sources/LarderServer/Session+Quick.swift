import LarderEngine
import RESP

/// The commonest commands in their usual form, without what the general way through the command table costs: no `Call`,
/// no `Key`, no allocation. What they answer is what their handlers in the table answer; whatever is unusual, needs the
/// disk or goes wrong is left to those, before anything was done.
extension Session {
    /// Runs the current command if it is one of these.
    /// - Returns: false when nothing was done, and the command has to go the general way.
    @inline(__always)
    func runQuickly(now: Int64) -> Bool {
        let count = parserMemory.pointee.argumentCount
        let word = parserMemory.pointee.word(0)
        if word == .get { return count == 2 && getQuickly(now) }
        if word == .set { return count >= 3 && setQuickly(now, count) }
        if word == .ping {
            guard count == 1 else { return false }
            replyMemory.pointee.raw("+PONG\r\n")
            return true
        }
        if word == .mget { return mgetQuickly(now, count) }
        if word == .exists { return count == 2 && existsQuickly(now) }
        return false
    }

    /// The argument as a key; nil where it cannot be one, or where reads see something else than the database as it is.
    private func quickKey(_ index: Int) -> UnsafeRawBufferPointer? {
        let bytes = parserMemory.pointee.argument(index)
        return bytes.count <= Key.bytesMax ? bytes : nil
    }

    private func getQuickly(_ now: Int64) -> Bool {
        guard seesCurrent, let key = quickKey(1) else { return false }
        let replies = replyMemory
        let start = sentBytes + replies.pointee.count
        var ticket = CommitTicket.none
        let found = quickDatabase._withUnsafeGuaranteedRef { database -> QuickRead in
            do throws(LarderError) {
                return try database.readQuickly(key, now: now, ticket: &ticket) { _, payload in
                    replies.pointee.bulk(payload)
                }
            } catch {
                return .cold
            }
        }
        switch found {
        case .hit: break
        case .miss: replies.pointee.null()
        case .cold: return false
        }
        hold(from: start, ticket)
        return true
    }

    private func existsQuickly(_ now: Int64) -> Bool {
        guard seesCurrent, let key = quickKey(1) else { return false }
        let start = sentBytes + replyMemory.pointee.count
        var ticket = CommitTicket.none
        let found = quickDatabase._withUnsafeGuaranteedRef { database -> QuickRead in
            do throws(LarderError) {
                return try database.readQuickly(key, now: now, ticket: &ticket) { _, _ in }
            } catch {
                return .cold
            }
        }
        if found == .cold { return false }
        replyMemory.pointee.integer(found == .hit ? 1 : 0)
        hold(from: start, ticket)
        return true
    }

    private func mgetQuickly(_ now: Int64, _ count: Int) -> Bool {
        guard seesCurrent, count >= 2 else { return false }
        for index in 1..<count where quickKey(index) == nil { return false }
        let replies = replyMemory
        let parser = parserMemory
        let start = sentBytes + replies.pointee.count
        var ticket = CommitTicket.none
        do throws(LarderError) {
            let found = try database.readQuickly(
                count: count - 1, key: { parser.pointee.argument($0 + 1) }, now: now, ticket: &ticket,
                { index, entry in
                    if index == 0 { replies.pointee.array(count: count - 1) }
                    if let entry { replies.pointee.bulk(entry.payload) } else { replies.pointee.null() }
                })
            if found == .cold { return false }
        } catch {
            return false
        }
        hold(from: start, ticket)
        return true
    }

    /// `SET key value`, alone or with one of `EX seconds` and `PX milliseconds`.
    private func setQuickly(_ now: Int64, _ count: Int) -> Bool {
        guard count == 3 || count == 5, let key = quickKey(1), !pipeline.isCongested else { return false }
        var rule = DeadlineRule.governed
        if count == 5 {
            guard let deadline = quickDeadline(now) else { return false }
            rule = .own(deadline)
        }
        let start = sentBytes + replyMemory.pointee.count
        let value = parserMemory.pointee.argument(2)
        let stored = quickDatabase._withUnsafeGuaranteedRef { database -> CommitTicket? in
            do throws(LarderError) {
                // Where files are not open, or take no writes, this throws before anything is done.
                return try database.setBlindly(key, payload: value, rule: rule, now: now)
            } catch {
                return nil
            }
        }
        guard let ticket = stored else { return false }
        replyMemory.pointee.raw("+OK\r\n")
        hold(from: start, ticket)
        return true
    }

    private func quickDeadline(_ now: Int64) -> Int64? {
        let word = parserMemory.pointee.word(3)
        guard word == .ex || word == .px, let value = parseInteger(parserMemory.pointee.argument(4)), value > 0,
            value <= Int64.max / 2000
        else { return nil }
        return now + (word == .ex ? value * 1000 : value)
    }
}

/// The words that every command is compared with.
extension ShortWord {
    static var get: ShortWord { ShortWord(constant: 0x74_65_67, length: 3) }
    static var set: ShortWord { ShortWord(constant: 0x74_65_73, length: 3) }
    static var ping: ShortWord { ShortWord(constant: 0x67_6E_69_70, length: 4) }
    static var mget: ShortWord { ShortWord(constant: 0x74_65_67_6D, length: 4) }
    static var exists: ShortWord { ShortWord(constant: 0x73_74_73_69_78_65, length: 6) }
    static var ex: ShortWord { ShortWord(constant: 0x78_65, length: 2) }
    static var px: ShortWord { ShortWord(constant: 0x78_70, length: 2) }
}
