import LarderPlatform
import LarderServices

/// Logs wrong tokens: at most one line in 10 seconds, with the number of wrong tokens since the previous line.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class WrongTokens: @unchecked Sendable {
    private let log: Log
    private let lock = Lock()
    private var count = 0
    private var quietUntil = Int64.min

    private static let quietMilliseconds: Int64 = 10_000

    init(_ log: Log) { self.log = log }

    func add() {
        let count = lock.withLock { () -> Int in
            self.count += 1
            let now = MonotonicClock.milliseconds()
            guard now >= quietUntil else { return 0 }
            quietUntil = now + Self.quietMilliseconds
            defer { self.count = 0 }
            return self.count
        }
        if count > 0 {
            log.warning("a wrong token was sent" + (count > 1 ? ", \(count) times since the last line" : ""))
        }
    }
}
