// The command of `larderctl lock`.

import LarderPlatform

/// A command that runs while a lock is held. It inherits standard input, output and error.
///
/// Signals to stop, and user-defined signals, are forwarded to the command while it runs. Before that, they stop the
/// wait for the lock.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class LockedCommand: @unchecked Sendable {
    /// Signals that this program ignores, for example because of nohup, stay ignored.
    private static let passedOn = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]
        .filter { !ProcessStart.isIgnored($0) }

    private let lock = Lock()
    /// The running command; nil otherwise, because its process ID may then belong to another process.
    private var pid: pid_t?
    private var isCancelled = false
    private var signal: Int32 = 0
    private var stopWaiting: (@Sendable () -> Void)?

    /// Blocks the signals. Do this before other threads start, which must not receive them.
    init() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in Self.passedOn { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // Runs until the program exits.
        _ = WorkThread(name: "signals") { [self] in passSignalsOn() }
    }

    /// The last received signal to stop; 0 for none.
    var askedBy: Int32 { lock.withLock { signal } }

    /// Calls `stop` when a signal arrives while no command runs, or has arrived already.
    func onSignal(_ stop: @escaping @Sendable () -> Void) {
        let isLate = lock.withLock {
            stopWaiting = stop
            return signal != 0
        }
        if isLate { stop() }
    }

    private func passSignalsOn() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in Self.passedOn { sigaddset(&signals, signal) }
        while true {
            var number: Int32 = 0
            guard sigwait(&signals, &number) == 0 else { continue }
            let stop = lock.withLock { () -> (@Sendable () -> Void)? in
                signal = number
                guard let pid else { return stopWaiting }
                kill(pid, number)
                return nil
            }
            stop?()
        }
    }

    // MARK: The command

    /// Runs a command until it exits. If the task is cancelled, the command gets SIGTERM, and is still waited for.
    /// - Throws: ``InputOutputError`` if it cannot be started; `CancellationError` if the task was cancelled before.
    func run(_ words: [[UInt8]]) async throws -> ProcessEnd {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                _ = WorkThread(name: "command") { [self] in
                    continuation.resume(with: Result { try runHere(words) })
                }
            }
        } onCancel: {
            lock.withLock {
                isCancelled = true
                if let pid { kill(pid, SIGTERM) }
            }
        }
    }

    private func runHere(_ words: [[UInt8]]) throws -> ProcessEnd {
        let pid = try lock.withLock {
            if isCancelled || signal != 0 { throw CancellationError() }
            do throws(FileError) {
                var start = ProcessStart(words: words)
                start.descriptors = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
                let pid = try start.start()
                self.pid = pid
                return pid
            } catch {
                throw InputOutputError(message: "cannot \(error)")
            }
        }
        var info = siginfo_t()
        // Keep the zombie, so that its process ID is not reused.
        while waitid(P_PID, id_t(pid), &info, CInt(WEXITED | WNOWAIT)) < 0, errno == EINTR {}
        return try lock.withLock {
            self.pid = nil
            return try ProcessEnd.wait(for: pid)
        }
    }

    // MARK: Exit

    /// Exits like the command: with its exit code or, if a signal terminated it, with a shell's exit code for that
    /// signal. If this program received the same signal, the signal terminates this program, too.
    func endProgram(as end: ProcessEnd) -> Never {
        switch end {
        case .exited(let code): exit(code)
        case .killed(let signal):
            if signal == askedBy { LoaderProcess.endProgram(by: signal) }
            exit(128 + signal)
        }
    }
}
