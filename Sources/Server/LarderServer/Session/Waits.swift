import LarderPlatform
import LarderRESP

/// A command's reply that another thread will deliver. The command's session owns it; any thread may set it.
///
/// `@unchecked Sendable`: the reply is guarded by `lock`.
final class AwaitedReply: @unchecked Sendable {
    typealias Reply = Result<RESPValue, CommandError>

    private let lock = Lock()
    private var reply: Reply?
    private let wakeUp: (@Sendable () -> Void)?

    /// - Parameter wakeUp: makes the event loop run the command again; called when the reply is set.
    init(wakeUp: (@Sendable () -> Void)?) { self.wakeUp = wakeUp }

    /// The reply; nil until it is set.
    var value: Reply? { lock.withLock { reply } }

    func set(_ reply: Reply) {
        lock.withLock { self.reply = reply }
        wakeUp?()
    }
}
