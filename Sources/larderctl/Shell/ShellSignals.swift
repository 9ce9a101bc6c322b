import LarderClient
import Platform
import Synchronization

/// The signals of an interactive shell, on a thread of their own. While a line is edited they come through a pipe, which is
/// waited for together with the keys; while a command runs, Ctrl-C ends its waiting.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class ShellSignals: @unchecked Sendable {
    private static let watched = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGCONT]
        .filter { !ProcessStart.isIgnored($0) }

    /// Has a byte for each signal.
    let readEnd: Int32
    private let writeEnd: Int32
    private let lock = Lock()
    /// Whose waiting Ctrl-C ends; nil while nothing runs.
    private var client: BlockingLarderClient?
    private let interrupted = Atomic<Bool>(false)

    init() throws(InputOutputError) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw InputOutputError(message: "there is no pipe for signals: \(SystemErrorText.of(errno))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (readEnd, writeEnd) = (ends[0], ends[1])
        var signals = Self.signalSet
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // Lives until the program ends.
        _ = WorkThread(name: "signals") { [self] in
            var signals = Self.signalSet
            while true {
                var signal: Int32 = 0
                if sigwait(&signals, &signal) == 0 { take(signal) }
            }
        }
    }

    private static var signalSet: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in watched { sigaddset(&signals, signal) }
        return signals
    }

    private func take(_ signal: Int32) {
        let isRunning = lock.withLock {
            guard let client else { return false }
            if signal == SIGINT {
                interrupted.store(true, ordering: .relaxed)
                client.interrupt()
            }
            return true
        }
        switch (signal, isRunning) {
        case (SIGINT, true), (SIGCONT, true): break
        // The terminal is as the shell has left it.
        case (SIGTSTP, true): kill(getpid(), SIGSTOP)
        case (SIGTERM, true), (SIGHUP, true), (SIGQUIT, true): LoaderProcess.endProgram(by: signal)
        default:
            var byte = UInt8(truncatingIfNeeded: signal)
            _ = write(writeEnd, &byte, 1)
        }
    }

    /// Whether Ctrl-C was pressed since ``run(_:_:)`` began.
    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Runs something that may wait long for a daemon.
    func run(_ client: BlockingLarderClient, _ body: () throws -> Void) rethrows {
        lock.withLock {
            self.client = client
            interrupted.store(false, ordering: .relaxed)
        }
        defer { lock.withLock { self.client = nil } }
        try body()
    }
}
