import CXXHash
import LarderEngine

/// What must be true of a value for a command to change it: `IFEQ value`, `IFNE value`, or the same of its digest, `IFDEQ
/// digest` and `IFDNE digest`.
struct ValueCondition {
    private enum Subject {
        case value([UInt8])
        case digest(UInt64)
    }

    private let subject: Subject
    private let isNegated: Bool

    /// Whether the word at `index` begins one.
    static func isOne(_ call: Call, _ index: Int) -> Bool {
        call.isWord(index, "IFEQ") || call.isWord(index, "IFNE") || call.isWord(index, "IFDEQ")
            || call.isWord(index, "IFDNE")
    }

    /// Reads the word at `index`, which begins one, and the one behind it.
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

    /// Whether it is true of the fresh entry. Nothing is equal to no entry.
    func holds(_ record: Record?) -> Bool {
        guard let record else { return isNegated }
        let isEqual =
            switch subject {
            case .value(let value): record.payload.elementsEqual(value)
            case .digest(let digest): record.withPayload { Digest.of($0) } == digest
            }
        return isEqual != isNegated
    }
}

/// The digest of a value: its XXH3 hash of 64 bits without a seed, shown as 16 hexadecimal digits.
enum Digest {
    static func of(_ payload: UnsafeRawBufferPointer) -> UInt64 { XXH3_64bits(payload.baseAddress, payload.count) }

    static func text(_ payload: UnsafeRawBufferPointer) -> String {
        let digits = String(of(payload), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Reads digits in either case; nil for anything else.
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
