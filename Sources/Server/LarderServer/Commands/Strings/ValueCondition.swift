import CLarderXXHash
import LarderEngine

/// A condition on the value that a command will change: `IFEQ value`, `IFNE value`, or `IFDEQ digest` and `IFDNE
/// digest` for its digest.
struct ValueCondition {
    private enum Subject {
        case value([UInt8])
        case digest(UInt64)
    }

    private let subject: Subject
    private let isNegated: Bool

    /// Whether the word at `index` starts a condition.
    static func isOne(_ call: Call, _ index: Int) -> Bool {
        call.isWord(index, "IFEQ") || call.isWord(index, "IFNE") || call.isWord(index, "IFDEQ")
            || call.isWord(index, "IFDNE")
    }

    /// Parses the condition at `index`, and its argument.
    init(_ call: Call, _ index: Int) throws(CommandError) {
        isNegated = call.isWord(index, "IFNE") || call.isWord(index, "IFDNE")
        if call.isWord(index, "IFEQ") || call.isWord(index, "IFNE") {
            subject = .value(call.array(index + 1))
        } else {
            guard let digest = Digest.parse(call.bytes(index + 1)) else {
                throw CommandError("ERR the digest must be 16 hexadecimal digits, as DIGEST returns them")
            }
            subject = .digest(digest)
        }
    }

    /// Whether the fresh entry meets the condition. A missing entry differs from every value.
    func holds(_ payload: UnsafeRawBufferPointer?) -> Bool {
        guard let payload else { return isNegated }
        let isEqual =
            switch subject {
            case .value(let value): payload.elementsEqual(value)
            case .digest(let digest): Digest.of(payload) == digest
            }
        return isEqual != isNegated
    }
}

/// The digest of a value: its 64-bit XXH3 hash without a seed, in 16 hexadecimal digits.
enum Digest {
    static func of(_ payload: UnsafeRawBufferPointer) -> UInt64 { XXH3_64bits(payload.baseAddress, payload.count) }

    static func text(_ payload: UnsafeRawBufferPointer) -> String { of(payload).hexadecimal() }

    /// Passes the digest's text as bytes, without creating a string.
    static func withText(_ digest: UInt64, _ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 1) { place in
            for index in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: digest >> UInt64(60 - 4 * index)) & 15
                place[index] = digit < 10 ? 0x30 + digit : 0x57 + digit
            }
            body(UnsafeRawBufferPointer(place))
        }
    }

    /// Accepts digits in either case; nil for anything else.
    static func parse(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        guard bytes.count == 16 else { return nil }
        var value: UInt64 = 0
        for byte in bytes {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            value = value << 4 | UInt64(digit)
        }
        return value
    }
}
