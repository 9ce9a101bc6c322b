import LarderCommandCatalog
import LarderEngine
import LarderRESP

// Properties of a single call, computed from the metadata of its command.

extension CommandMetadata {
    func accepts(argumentCount: Int) -> Bool { arity >= 0 ? argumentCount == arity : argumentCount >= -arity }

    /// Returns the positions of the words that are keys.
    /// - Parameter word: returns the bytes of one of the call's words.
    func keyIndices(count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> [Int] {
        guard keys.first > 0, keys.step > 0 else { return [] }
        if keys.countAt > 0 {
            guard keys.countAt < count, let number = parseInteger(word(keys.countAt)), number > 0 else { return [] }
            let room = (count - keys.first + keys.step - 1) / keys.step
            return (0..<max(0, min(room, Int(clamping: number)))).map { keys.first + $0 * keys.step }
        }
        let last = min(count - 1, keys.last < 0 ? count + keys.last : keys.last)
        guard keys.first <= last else { return [] }
        return Array(stride(from: keys.first, through: last, by: keys.step))
    }

    /// Throws if one of the words that are keys is too long.
    func checkKeys(_ indices: [Int], _ word: (Int) -> UnsafeRawBufferPointer) throws(CommandError) {
        for index in indices where word(index).count > Key.bytesMax { throw .tooLongKey(word(index).count) }
    }

    /// Returns Redis' flags that describe how a call uses one of its keys.
    /// - Parameters:
    ///   - position: the position of the key among the call's keys, from 0.
    ///   - count: the number of the call's words.
    ///   - word: returns the bytes of one of the call's words.
    func keyFlags(position: Int, count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> [String] {
        switch keyUse {
        case .overwritesUnlessGET where !(3..<max(3, count)).contains { equalsIgnoringCase(word($0), "GET") }:
            return ["OW", "update"]
        case .readsIfOnlyGET where Self.onlyReads(bitfield: count, word): return ["RO", "access"]
        default:
            return access[min(position, access.count - 1)].filter { $0 != "variable_flags" }
        }
    }

    /// Whether all operations of a BITFIELD call only read.
    private static func onlyReads(bitfield count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> Bool {
        var index = 2
        while index < count {
            if equalsIgnoringCase(word(index), "GET"), index + 2 < count {
                index += 3
            } else if equalsIgnoringCase(word(index), "OVERFLOW"), index + 1 < count {
                index += 2
            } else {
                return false
            }
        }
        return true
    }
}

extension CommandMetadata.KeySpecification {
    func write(to replies: inout ReplyBuffer) {
        replies.map(count: notes == nil ? 3 : 4)
        if let notes { replies.field("notes", notes) }
        replies.bulk("flags")
        replies.set(count: flags.count)
        for flag in flags { replies.simple(flag) }
        replies.bulk("begin_search")
        replies.map(count: 2)
        replies.field("type", "index")
        replies.bulk("spec")
        replies.map(count: 1)
        replies.field("index", index)
        replies.bulk("find_keys")
        replies.map(count: 2)
        replies.field("type", isCounted ? "keynum" : "range")
        replies.bulk("spec")
        replies.map(count: 3)
        let spec =
            isCounted
            ? [("keynumidx", 0), ("firstkey", 1), ("keystep", step)]
            : [("lastkey", last), ("keystep", step), ("limit", 0)]
        for (name, number) in spec { replies.field(name, number) }
    }
}
