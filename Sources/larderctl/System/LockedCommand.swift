// The command of `larderctl lock`.

import LarderPlatform

/// A command that runs while a lock is held. It has this program's standard input, output and error.
///
/// Signals that ask this program to end, and those that mean what a program likes, go to the command while it runs; before it has begun they end the waiting.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class LockedCommand: @unchecked Sendable {
    /// What this program was told to ignore, as by nohup, it and the command go on ignoring.
    private static let passedOn = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]
        .filter { !ProcessStart.isIgnored($0) }

    private let lock = Lock()
    /// While it runs: so the identifier is nobody else's.
    private var pid: pid_t?
    private var isCancelled = false
    private var signal: Int32 = 0
    private var stopWaiting: (@Sendable () -> Void)?

    /// Takes over the signals. Before other threads begin, which must not get them either.
    init() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in Self.passedOn { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // It lives until the program ends.
        _ = WorkThread(name: "signals") { [self] in passSignalsOn() }
    }

    /// The last signal that asked this program to end; 0 for none.
    var askedBy: Int32 { lock.withLock { signal } }

    /// Has `stop` called when a signal comes while no command runs, also if one came already.
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

    /// Runs a command to its end. If the task is cancelled, it gets SIGTERM, and is waited for nevertheless.
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
        // It stays a zombie, so that its identifier is nobody else's.
        while waitid(P_PID, id_t(pid), &info, CInt(WEXITED | WNOWAIT)) < 0, errno == EINTR {}
        return try lock.withLock {
            self.pid = nil
            return try ProcessEnd.wait(for: pid)
        }
    }

    // MARK: The end

    /// Ends this program as the command has ended: with its exit code, or as a shell shows a signal. A signal that this
    /// program got, too, ends it in the same way.
    func endProgram(as end: ProcessEnd) -> Never {
        switch end {
        case .exited(let code): exit(code)
        case .killed(let signal):
            if signal == askedBy { LoaderProcess.endProgram(by: signal) }
            exit(128 + signal)
        }
    }
}
