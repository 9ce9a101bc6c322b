/// The secret words of calls: they are hidden in the slow log and from MONITOR, and are not stored in histories.
extension CommandMetadata {
    /// Settings that Redis hides too: passwords, and names that belong to them.
    private static let secretSettings: [StaticString] = [
        "REQUIREPASS", "MASTERAUTH", "MASTERUSER", "TLS-KEY-FILE-PASS", "TLS-CLIENT-KEY-FILE-PASS",
    ]

    /// The words of a call that may be a name and its password. If CONFIG SET names a secret, all following words are
    /// secret.
    package func secretRange(_ count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> Range<Int> {
        var (row, start) = (self, 0)
        // If calls are nested too deeply, all words are secret.
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
            // Find a secret's name even if the value of a preceding setting was omitted.
            let first = (2..<max(2, count)).first { index in
                Self.secretSettings.contains { Self.isWord(word(index), $0) }
            }
            return first.map { min($0 + 1, count)..<count } ?? 0..<0
        case .afterAUTH:
            // Find AUTH even if the call omits the version before it, or the name after SETNAME.
            var index = 1
            while index < count {
                if Self.isWord(word(index), "AUTH") { return index + 1..<min(index + 3, count) }
                guard Self.isWord(word(index), "SETNAME"), index + 1 < count else {
                    index += 1
                    continue
                }
                // AUTH may also be a name.
                let isName = index + 2 < count && Self.isWord(word(index + 2), "AUTH")
                if Self.isWord(word(index + 1), "AUTH"), !isName { return index + 2..<count }
                index += 2
            }
            return 0..<0
        }
    }

    /// Whether a call has a secret word.
    package static func hasSecret(_ call: [[UInt8]]) -> Bool {
        guard let row = row(of: call) else { return false }
        let starts = call.reduce(into: [0]) { $0.append($0[$0.count - 1] + $1.count) }
        return Array(call.joined()).withUnsafeBytes { bytes in
            !row.secretRange(call.count) { UnsafeRawBufferPointer(rebasing: bytes[starts[$0]..<starts[$0 + 1]]) }
                .isEmpty
        }
    }

    /// The placeholder for a secret word.
    package static var redacted: UnsafeRawBufferPointer {
        // The memory of a static string is never freed.
        let text: StaticString = "(redacted)"
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Whether bytes equal an upper-case word, ignoring the case of ASCII letters.
    private static func isWord(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
        guard bytes.count == word.utf8CodeUnitCount else { return false }
        return bytes.indices.allSatisfy { index in
            let byte = bytes[index]
            return (byte >= 0x61 && byte <= 0x7A ? byte - 0x20 : byte) == word.utf8Start[index]
        }
    }
}
