import LarderPlatform
import LarderRESP

/// A reply that comes from elsewhere, and for which no thread waits. Its session owns it; whoever replies may be any thread.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the reply is read and written with the lock held.
final class AwaitedReply: @unchecked Sendable {
    typealias Reply = Result<RESPValue, CommandError>

    private let lock = Lock()
    private var reply: Reply?
    private let wakeUp: (@Sendable () -> Void)?

    /// - Parameter wakeUp: has the command run again.
    init(wakeUp: (@Sendable () -> Void)?) { self.wakeUp = wakeUp }

    /// The reply; nil as long as there is none.
    var value: Reply? { lock.withLock { reply } }

    func set(_ reply: Reply) {
        lock.withLock { self.reply = reply }
        wakeUp?()
    }
}
