import LarderPlatform

/// The sessions of browsers. After a login with the token, a browser sends the random name of its session instead of
/// the token.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class LoginSessions: @unchecked Sendable {
    /// The lifetime of a session in seconds: 12 hours.
    static let seconds = 43_200
    private static let countMax = 64

    private let lock = Lock()
    private var ends: [(name: [UInt8], at: Int64)] = []

    func begin() -> String {
        var random = SystemRandomNumberGenerator()
        let name = HexText.text((0..<32).map { _ in UInt8.random(in: 0...255, using: &random) })
        lock.withLock {
            // Drop the oldest sessions if there are too many.
            ends = ends.suffix(Self.countMax - 1)
            ends.append((Array(name.utf8), MonotonicClock.milliseconds() + Int64(Self.seconds) * 1000))
        }
        return name
    }

    func contains(_ name: String) -> Bool {
        let (name, now) = (Array(name.utf8), MonotonicClock.milliseconds())
        return lock.withLock {
            ends.removeAll { $0.at <= now }
            return ends.reduce(false) { SecretText.isEqual(name, $1.name) || $0 }
        }
    }

    func end(_ name: String) {
        lock.withLock { ends.removeAll { SecretText.isEqual(Array(name.utf8), $0.name) } }
    }
}

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
