/// Compares received text with a secret.
enum SecretText {
    /// Compares texts. The time depends only on their lengths, so that it does not reveal how many bytes were right.
    @inline(never)
    static func isEqual(_ text: [UInt8], _ secret: [UInt8]) -> Bool {
        guard !secret.isEmpty else { return false }
        var difference = text.count ^ secret.count
        for (index, byte) in text.enumerated() { difference |= Int(byte ^ secret[index % secret.count]) }
        return difference == 0
    }
}
