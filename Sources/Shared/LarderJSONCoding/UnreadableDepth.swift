/// Checks whether a text, which may be malformed, nests too deeply for any JSON reader.
enum UnreadableDepth {
    /// Whether more than 512 brackets are open at some point. Brackets in strings are not counted.
    static func isReached(in text: UnsafeRawBufferPointer) -> Bool {
        var depth = 0
        var index = 0
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > DocumentIndex.depthMax { return true }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: "\""):
                index += 1
                while index < text.count, text[index] != UInt8(ascii: "\"") {
                    index += text[index] == UInt8(ascii: "\\") ? 2 : 1
                }
            default: break
            }
            index += 1
        }
        return false
    }
}
