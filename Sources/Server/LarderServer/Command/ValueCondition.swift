import CLarderXXHash
import LarderEngine

/// A condition on the current value of a key. `IFEQ` and `IFNE` compare the value; `IFDEQ` and `IFDNE` compare its
/// digest.
struct ValueCondition {
    private enum Subject {
        case value([UInt8])
        case digest(UInt64)
    }

    private let subject: Subject
    private let isNegated: Bool

    /// Whether a condition begins at the word at `index`.
    static func isOne(_ call: some CommandWords, _ index: Int) -> Bool {
        call.isWord(index, "IFEQ") || call.isWord(index, "IFNE") || call.isWord(index, "IFDEQ")
            || call.isWord(index, "IFDNE")
    }

    /// Parses the condition that begins at `index`.
    init(_ call: some CommandWords, _ index: Int) throws(CommandError) {
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

    /// Whether a value meets the condition.
    /// - Parameter payload: the value; nil for a missing entry, which counts as different from every value.
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

/// The digest of a value: its 64-bit XXH3 hash with the seed 0, shown as 16 hexadecimal digits.
enum Digest {
    static func of(_ payload: UnsafeRawBufferPointer) -> UInt64 { XXH3_64bits(payload.baseAddress, payload.count) }

    static func text(_ payload: UnsafeRawBufferPointer) -> String { of(payload).hexadecimal() }

    /// Calls `body` with the text of a digest as bytes. Does not create a string.
    static func withText(_ digest: UInt64, _ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 1) { place in
            for index in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: digest >> UInt64(60 - 4 * index)) & 15
                place[index] = digit < 10 ? 0x30 + digit : 0x57 + digit
            }
            body(UnsafeRawBufferPointer(place))
        }
    }

    /// Parses a digest with upper- or lower-case digits. Returns nil if the text is not a digest.
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
