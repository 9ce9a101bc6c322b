// Requests for conditional writes, for counters, and for changes of lifetimes.

import LarderRESP

extension Request where Result == Bool {
    /// Removes an entry if it has a given value.
    static func remove(_ key: [UInt8], ifEqual value: [UInt8]) -> Request {
        flag([Array("DELEX".utf8), key, Array("IFEQ".utf8), value], key: key)
    }

    /// Sets an entry's deadline, in milliseconds from now.
    static func expire(_ key: [UInt8], afterMilliseconds interval: Int64) -> Request {
        flag([Array("PEXPIRE".utf8), key, Array("\(interval)".utf8)], key: key)
    }

    /// Sets an entry's deadline, in milliseconds since 1970.
    static func expire(_ key: [UInt8], atMilliseconds instant: Int64) -> Request {
        flag([Array("PEXPIREAT".utf8), key, Array("\(instant)".utf8)], key: key)
    }

    /// Removes an entry's deadline. Returns false both for a missing entry and for one without a deadline; EXISTS
    /// distinguishes the two.
    static func persist(_ key: [UInt8]) -> Request { flag([Array("PERSIST".utf8), key], key: key) }

    private static func flag(_ words: [[UInt8]], key: [UInt8]) -> Request {
        Request(words, key: key, expects: "0 or 1") { reply in
            if case .integer(let number) = reply { number > 0 } else { nil }
        }
    }
}

extension Request where Result == [UInt8]? {
    /// Returns the value and removes the entry.
    static func take(_ key: [UInt8]) -> Request { value(of: [Array("GETDEL".utf8), key]) }

    /// Returns the value and changes the lifetime of the entry.
    /// - Parameter lifetime: the words of GETEX after the key.
    static func get(_ key: [UInt8], renewing lifetime: [[UInt8]]) -> Request {
        value(of: [Array("GETEX".utf8), key] + lifetime)
    }

    private static func value(of words: [[UInt8]]) -> Request {
        Request(words, key: words[1], expects: "a value") { reply in
            switch reply {
            case .null: .some(nil)
            case .bulk(let bytes): bytes
            default: nil
            }
        }
    }
}

extension Request where Result == Int64 {
    static func increment(_ key: [UInt8], by step: Int64) -> Request {
        integer([Array("INCRBY".utf8), key, Array("\(step)".utf8)], key: key)
    }
}

extension Request where Result == Double {
    static func increment(_ key: [UInt8], by step: Double) -> Request {
        Request([Array("INCRBYFLOAT".utf8), key, Array("\(step)".utf8)], key: key, expects: "a number") {
            (reply) throws(LarderClientError) in
            guard let sum = reply.string.flatMap({ Double($0) }) else { return nil }
            // larderd refuses a sum that is not a finite Double. Redis computes with more bits, and has stored the sum.
            guard sum.isFinite else {
                throw LarderClientError(
                    .decode, "the sum was stored, but exceeds the range of a Double", operation: "INCRBYFLOAT",
                    key: printableKey(key))
            }
            return sum
        }
    }
}
