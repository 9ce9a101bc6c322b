import LarderClient
import LarderPlatform
import Synchronization

/// Handles the signals of an interactive shell on a separate thread. While a line is edited, the signals are written to
/// a pipe, which the line editor polls together with the keys. At other times, Ctrl-C ends the wait for a reply.
///
/// `@unchecked Sendable`: mutable state is guarded by `lock`.
final class ShellSignals: @unchecked Sendable {
    /// The pipe from which the line editor reads a byte for each signal.
    let pipe: Pipe
    private var client: BlockingLarderClient?
    private let lock = Lock()
    private var isEditing = false
    private let interrupted = Atomic<Bool>(false)

    /// - Parameter client: the client whose wait for a reply Ctrl-C ends; nil if Ctrl-C must terminate the program.
    init(_ client: BlockingLarderClient?) throws(InputOutputError) {
        pipe = try Pipe(for: "signals")
        self.client = client
        SignalSet([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGCONT]).watch { [self] signal in
            lock.withLock { take(signal) }
        }
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
            while Descriptor.poll(pipe.readEnd, milliseconds: 0)[0], let signal = pipe.receive() { take(signal) }
        }
        return result
    }

    // MARK: Called with `lock` held

    private func take(_ signal: Int32) {
        if isEditing { return pipe.send(signal) }
        // No line is edited, so the terminal has its original settings, which need not be restored.
        switch signal {
        case SIGINT:
            guard let client else { SignalSet.endProgram(by: signal) }
            interrupted.store(true, ordering: .relaxed)
            client.interrupt()
        case SIGTSTP: kill(getpid(), SIGSTOP)
        case SIGTERM, SIGHUP, SIGQUIT: SignalSet.endProgram(by: signal)
        default: break
        }
    }
}
