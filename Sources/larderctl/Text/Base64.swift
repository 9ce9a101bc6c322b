#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Encodes and decodes base 64 with the standard alphabet and padding (RFC 4648, section 4).
enum Base64 {
    static func encoded(_ bytes: [UInt8]) -> Data { Data(bytes).base64EncodedData() }

    /// Decodes a text. Returns nil unless ``encoded(_:)`` would return exactly this text.
    static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        let text = Data(text)
        guard let bytes = Data(base64Encoded: text), bytes.base64EncodedData() == text else { return nil }
        return Array(bytes)
    }
}
