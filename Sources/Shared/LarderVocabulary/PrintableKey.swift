import LarderPlatform

/// Formats a key for messages. A short key of printable text is unchanged. Otherwise each byte that is not printable
/// ASCII becomes `\xHH`, and keys of more than 64 bytes are cut.
package func printableKey(_ bytes: some Collection<UInt8>) -> String {
    if bytes.count <= 64, let text = String(validating: Array(bytes), as: UTF8.self),
        !text.unicodeScalars.contains(where: \.steersTerminal)
    {
        return text
    }
    var text = ""
    for byte in bytes.prefix(64) {
        if byte >= 0x20 && byte < 0x7F && byte != 0x5C {
            text.unicodeScalars.append(Unicode.Scalar(byte))
        } else {
            text += "\\x" + HexText.text([byte])
        }
    }
    return bytes.count > 64 ? text + "…" : text
}

/// Formats a number and a noun for messages: `1 entry`, `2 entries`.
/// - Parameter several: the plural; nil if it is the singular and an "s".
package func counted(_ count: some BinaryInteger, _ one: String, _ several: String? = nil) -> String {
    "\(count) " + (count == 1 ? one : several ?? one + "s")
}
