import CommandCatalog

/// The words of calls that nobody may see: they are hidden in the slow log and from MONITOR.
enum SecretArguments {
    /// Settings that Redis hides too: passwords, and the names that go with them.
    private static let secretSettings: [StaticString] = [
        "REQUIREPASS", "MASTERAUTH", "MASTERUSER", "TLS-KEY-FILE-PASS", "TLS-CLIENT-KEY-FILE-PASS",
    ]

    /// Which words may be a name and its password. If CONFIG SET names a secret, all words behind it count as secrets.
    static func range(
        _ spec: CommandMetadata, _ count: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Range<Int> {
        switch spec.secrets {
        case .none: return 0..<0
        case .all: return 1..<max(1, count)
        case .ofSecretSettings:
            let first = stride(from: 2, to: count, by: 2).first { index in
                secretSettings.contains { equalsIgnoringCase(word(index), $0) }
            }
            return first.map { min($0 + 1, count)..<count } ?? 0..<0
        case .afterAUTH:
            var index = 2
            while index < count {
                if equalsIgnoringCase(word(index), "AUTH") { return index + 1..<min(index + 3, count) }
                index += equalsIgnoringCase(word(index), "SETNAME") ? 2 : 1
            }
            return 0..<0
        }
    }

    static var redacted: UnsafeRawBufferPointer {
        // Constant in the program's file.
        let text: StaticString = "(redacted)"
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }
}
