import LarderClient
import LarderPlatform
import Synchronization

/// Handles the signals of an interactive shell on a separate thread. While a line is edited, the signals are written to
/// a pipe, which the line editor polls together with the keys. At other times, Ctrl-C ends the wait for a reply.
///
/// `@unchecked Sendable`: mutable state is guarded by `lock`.
final class ShellSignals: @unchecked Sendable {
    private static let watched = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGCONT]
        .filter { !ProcessStart.isIgnored($0) }

    /// The end of the pipe from which the line editor reads a byte for each signal.
    let readEnd: Int32
    private let writeEnd: Int32
    private var client: BlockingLarderClient?
    private let lock = Lock()
    private var isEditing = false
    private let interrupted = Atomic<Bool>(false)

    /// - Parameter client: the client whose wait for a reply Ctrl-C ends; nil if Ctrl-C must terminate the program.
    init(_ client: BlockingLarderClient?) throws(InputOutputError) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw InputOutputError(message: "cannot create a pipe for signals: \(SystemErrorText.of(errno))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (readEnd, writeEnd) = (ends[0], ends[1])
        self.client = client
        var signals = Self.signalSet
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // Runs until the program exits.
        _ = WorkThread(name: "signals") { [self] in
            var signals = Self.signalSet
            while true {
                var signal: Int32 = 0
                if sigwait(&signals, &signal) == 0 { lock.withLock { take(signal) } }
            }
        }
    }

    private static var signalSet: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in watched { sigaddset(&signals, signal) }
        return signals
    }

    /// Sets the client whose wait for a reply Ctrl-C ends; nil if Ctrl-C must terminate the program.
    func use(_ client: BlockingLarderClient?) { lock.withLock { self.client = client } }

    /// Whether Ctrl-C was pressed since the user last edited a line.
    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Runs `body`, which edits a line and reads signals from the pipe. Handles signals that `body` has not read.
    func editing<Result>(_ body: () -> Result) -> Result {
        lock.withLock {
            isEditing = true
            interrupted.store(false, ordering: .relaxed)
            client?.forgetInterruption()
        }
        let result = body()
        lock.withLock {
            isEditing = false
            var entry = pollfd(fd: readEnd, events: Int16(truncatingIfNeeded: POLLIN), revents: 0)
            var byte: UInt8 = 0
            while poll(&entry, 1, 0) > 0, systemRead(readEnd, &byte, 1) == 1 { take(Int32(byte)) }
        }
        return result
    }

    // MARK: Called with `lock` held

    private func take(_ signal: Int32) {
        if isEditing {
            var byte = UInt8(truncatingIfNeeded: signal)
            _ = write(writeEnd, &byte, 1)
            return
        }
        // No line is edited, so the terminal has its original settings, which need not be restored.
        switch signal {
        case SIGINT:
            guard let client else { LoaderProcess.endProgram(by: signal) }
            interrupted.store(true, ordering: .relaxed)
            client.interrupt()
        case SIGTSTP: kill(getpid(), SIGSTOP)
        case SIGTERM, SIGHUP, SIGQUIT: LoaderProcess.endProgram(by: signal)
        default: break
        }
    }
}
