import Synchronization

/// Idle ``QuickCommands`` for the threads that run sessions. Thread-safe.
final class QuickCommandsPool: Sendable {
    private let idle = Mutex<[QuickCommands]>([])

    func take() -> QuickCommands { idle.withLock { $0.popLast() } ?? QuickCommands() }

    func give(_ commands: QuickCommands) { idle.withLock { $0.append(commands) } }
}
