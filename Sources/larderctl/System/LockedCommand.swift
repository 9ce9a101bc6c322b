// The command of `larderctl lock`.

import LarderPlatform

/// Runs a command while a lock is held. The command inherits standard input, output and error.
///
/// While the command runs, SIGUSR1, SIGUSR2 and the signals to terminate are passed on to the command. Before the
/// command is started, these signals end the wait for the lock.
///
/// `@unchecked Sendable`: mutable state is guarded by `lock`.
final class LockedCommand: @unchecked Sendable {
    private let lock = Lock()
    /// The process ID of the running command. Nil after its exit, because the ID may then be that of another process.
    private var pid: pid_t?
    private var isCancelled = false
    private var signal: Int32 = 0
    private var stopWaiting: (@Sendable () -> Void)?

    /// Blocks the signals, so that a separate thread can wait for them. Call it before other threads start: they
    /// inherit the blocked signals.
    init() {
        SignalSet([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]).watch { [self] number in
            let stop = lock.withLock { () -> (@Sendable () -> Void)? in
                signal = number
                guard let pid else { return stopWaiting }
                kill(pid, number)
                return nil
            }
            stop?()
        }
    }

    /// The last signal that this program has received; 0 if there was none.
    var receivedSignal: Int32 { lock.withLock { signal } }

    /// Calls `stop` when a signal arrives while no command runs; immediately if a signal has arrived before this call.
    func onSignal(_ stop: @escaping @Sendable () -> Void) {
        let isLate = lock.withLock {
            stopWaiting = stop
            return signal != 0
        }
        if isLate { stop() }
    }

    // MARK: The command

    /// Runs a command until it exits. If the task is cancelled, sends SIGTERM to the command and waits for its exit.
    /// - Throws: ``InputOutputError`` if the command cannot be started; `CancellationError` if the task was cancelled.
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
            let pid = try ChildCommand.start(words, output: STDOUT_FILENO)
            self.pid = pid
            return pid
        }
        ChildCommand.awaitExit(pid)
        return try lock.withLock {
            self.pid = nil
            return try ProcessEnd.wait(for: pid)
        }
    }

    // MARK: Exit

    /// Exits with the command's exit code, or with 128 plus the number of the signal that terminated the command. If
    /// this program has received the same signal, terminates by that signal instead.
    func endProgram(as end: ProcessEnd) -> Never {
        switch end {
        case .exited(let code): exit(code)
        case .killed(let signal):
            if signal == receivedSignal { SignalSet.endProgram(by: signal) }
            exit(128 + signal)
        }
    }
}

/// A command with this program's standard input and error.
enum ChildCommand {
    static func start(_ words: [[UInt8]], output: Int32) throws(InputOutputError) -> pid_t {
        var start = ProcessStart(words: words)
        start.descriptors = [STDIN_FILENO, output, STDERR_FILENO]
        do throws(FileError) { return try start.start() } catch { throw InputOutputError(message: "cannot \(error)") }
    }

    /// Waits until the command has exited, and keeps it as a zombie, so that its process ID is not reused.
    static func awaitExit(_ pid: pid_t) {
        var info = siginfo_t()
        while waitid(P_PID, id_t(pid), &info, CInt(WEXITED | WNOWAIT)) < 0, errno == EINTR {}
    }
}

/// An environment variable in which programs leave marks for the commands that they run, separated by colons.
enum ParentMarks {
    static func all(_ variable: String) -> [String] {
        (getenv(variable).map { String(cString: $0) } ?? "").split(separator: ":").map(String.init)
    }

    static func add(_ mark: String, to variable: String) {
        setenv(variable, (all(variable) + [mark]).joined(separator: ":"), 1)
    }
}

/// Checks that enough descriptors are free for what the program needs later.
enum ReservedDescriptors {
    /// The number of free descriptors needed. Swift's task runtime terminates the process if it cannot open descriptors
    /// for its timers.
    private static let needed = 12

    /// - Throws: ``InputOutputError`` if fewer descriptors are free.
    static func check() throws(InputOutputError) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        for _ in 0..<needed {
            let descriptor = dup(STDERR_FILENO)
            guard descriptor >= 0 else {
                // Standard error is closed, so an error could not be reported.
                guard errno != EBADF else { return }
                let reason = SystemErrorText.of(errno)
                throw InputOutputError(message: "too few descriptors are left (ulimit -n): \(reason)")
            }
            opened.append(descriptor)
        }
    }
}
