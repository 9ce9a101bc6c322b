/// Finds the secret words of a call, such as passwords. They are hidden in SLOWLOG and MONITOR, and not stored in
/// histories.
extension CommandMetadata {
    /// The settings whose values are hidden, as in Redis: passwords, and a user name that belongs to a password.
    private static let secretSettings: [StaticString] = [
        "REQUIREPASS", "MASTERAUTH", "MASTERUSER", "TLS-KEY-FILE-PASS", "TLS-CLIENT-KEY-FILE-PASS",
    ]

    /// Returns the positions of the words that may be a password, or a user name that belongs to a password. If CONFIG
    /// SET names a secret setting, the range contains all words after the setting's name.
    package func secretRange(_ count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> Range<Int> {
        var (row, start) = (self, 0)
        // A call can contain another call. If there are too many levels, all remaining words are secret.
        for _ in 0..<Self.callsMax {
            guard case .ofCall(let first) = row.secrets else {
                let range = row.ownSecretRange(count - start) { word(start + $0) }
                return range.isEmpty ? 0..<0 : range.lowerBound + start..<range.upperBound + start
            }
            start += first
            guard start < count,
                let inner = Self.row(of: (start..<min(count, start + 2)).map { [UInt8](word($0)) })
            else { return 0..<0 }
            row = inner
        }
        return min(start, count)..<count
    }

    private static let callsMax = 4

    private func ownSecretRange(_ count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> Range<Int> {
        switch secrets {
        case .none, .ofCall: return 0..<0
        case .from(let first): return min(first, count)..<count
        case .ofSecretSettings:
            // Names and values alternate, but the value of an earlier setting may be missing. So check every word.
            let first = (2..<max(2, count)).first { index in
                Self.secretSettings.contains { Self.isWord(word(index), $0) }
            }
            return first.map { min($0 + 1, count)..<count } ?? 0..<0
        case .afterAUTH:
            // Find AUTH even in an invalid call: the version before AUTH, or the name after SETNAME, may be missing.
            var index = 1
            while index < count {
                if Self.isWord(word(index), "AUTH") { return index + 1..<min(index + 3, count) }
                guard Self.isWord(word(index), "SETNAME"), index + 1 < count else {
                    index += 1
                    continue
                }
                // In `SETNAME AUTH AUTH`, the first AUTH is the connection's name. In any other `SETNAME AUTH`, assume
                // that the name is missing, and that AUTH is the option.
                let isName = index + 2 < count && Self.isWord(word(index + 2), "AUTH")
                if Self.isWord(word(index + 1), "AUTH"), !isName { return index + 2..<count }
                index += 2
            }
            return 0..<0
        }
    }

    package static func hasSecret(_ call: [[UInt8]]) -> Bool {
        guard let row = row(of: call) else { return false }
        let starts = call.reduce(into: [0]) { $0.append($0[$0.count - 1] + $1.count) }
        return Array(call.joined()).withUnsafeBytes { bytes in
            !row.secretRange(call.count) { UnsafeRawBufferPointer(rebasing: bytes[starts[$0]..<starts[$0 + 1]]) }
                .isEmpty
        }
    }

    /// The text that is shown instead of a secret word.
    package static var redacted: UnsafeRawBufferPointer {
        // The memory of a static string is never freed.
        let text: StaticString = "(redacted)"
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Whether bytes equal a word in capitals, ignoring the case of ASCII letters.
    private static func isWord(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
        guard bytes.count == word.utf8CodeUnitCount else { return false }
        return bytes.indices.allSatisfy { index in
            let byte = bytes[index]
            return (byte >= 0x61 && byte <= 0x7A ? byte - 0x20 : byte) == word.utf8Start[index]
        }
    }
}
