// The commands of `larderctl fetch` and `larderctl lock`.

import LarderPlatform
import LarderVocabulary

/// Runs a command with this program's standard input and error. While the command runs, the signals that this program
/// receives are sent to it.
final class ChildCommand: Sendable {
    private struct State {
        /// The process ID of the running command. Nil after its exit, because the ID may then be that of another
        /// process.
        var pid: pid_t?
        var isCancelled = false
        var signal: Int32 = 0
        var stop: (@Sendable () -> Void)?
        /// The pipe into which a byte is written when a signal arrives and when the command has exited, to wake the
        /// reader of its output.
        var wakes: Pipe?
    }

    private let state = Locked(State())

    /// Blocks the signals, so that a separate thread can wait for them. Call it before other threads start: they
    /// inherit the blocked signals.
    init(signals: [Int32]) {
        SignalSet(signals).watch { [self] number in
            let stop = state.withLock { state -> (@Sendable () -> Void)? in
                state.signal = number
                guard let pid = state.pid else { return state.stop }
                kill(pid, number)
                state.wakes?.send()
                return nil
            }
            stop?()
        }
    }

    /// The last signal that this program has received; 0 if there was none.
    var receivedSignal: Int32 { state.withLock { $0.signal } }

    /// Calls `stop` when a signal arrives while no command runs; immediately if a signal has arrived before this call.
    func onSignal(_ stop: @escaping @Sendable () -> Void) {
        let isLate = state.withLock {
            $0.stop = stop
            return $0.signal != 0
        }
        if isLate { stop() }
    }

    /// Runs a command with this program's standard output until it exits. If the task is cancelled, sends SIGTERM to
    /// the command and waits for its exit.
    /// - Throws: ``InputOutputError`` if the command cannot be started; `CancellationError` if the task was cancelled.
    func run(_ words: [[UInt8]]) async throws -> ProcessEnd {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                _ = WorkThread(name: "command") { [self] in
                    continuation.resume(with: Result { try waitForExit(of: try start(words, output: STDOUT_FILENO)) })
                }
            }
        } onCancel: {
            state.withLock { $0.isCancelled = true }
            terminate()
        }
    }

    /// Runs a command and collects its standard output, until all writers have closed it and the command has exited.
    ///
    /// If the command was killed, the output is not used, so need not be complete. After a signal to this program, does
    /// not wait for the command: it has received the signal too, and may need time.
    /// - Returns: the output, and how the command has ended; nil if it may still run, because of a signal.
    /// - Throws: if the command cannot be started, or is terminated because it writes more than a value may have.
    func collect(_ words: [[UInt8]]) throws -> (output: [UInt8], end: ProcessEnd?) {
        // Leave the pipe `wakes` open, because a signal may arrive until this program exits. The command inherits
        // neither pipe, but only the copy that is its standard output.
        let (output, wakes) = (try Pipe(for: "the command"), try Pipe(for: "the command"))
        defer { close(output.readEnd) }
        state.withLock { $0.wakes = wakes }
        let pid = try {
            defer { close(output.writeEnd) }
            return try start(words, output: output.writeEnd)
        }()
        let exit = Awaited(onThread: { [self] in try waitForExit(of: pid) }, onEnd: { wakes.send() })
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        // Whether the end of the pipe was reached. Until then, background processes of the command may write to it.
        var isComplete = false
        while true {
            if receivedSignal != 0 { return (bytes, nil) }
            let end = try exit.result(waitingUpTo: 0)?.get()
            switch end {
            case .killed?: return (bytes, end)
            case .exited? where isComplete: return (bytes, end)
            default: break
            }
            let ready = Descriptor.poll(isComplete ? -1 : output.readEnd, wakes.readEnd)
            if ready[1] { _ = wakes.receive() }
            guard ready[0] else { continue }
            let count = read(output.readEnd, &piece, piece.count)
            if count == 0 { isComplete = true }
            guard bytes.count + max(0, count) <= Input.bytesMax else {
                terminate()
                throw InputOutputError(
                    message: "the command wrote more than \(Input.bytesMax) bytes, the limit of a value")
            }
            bytes.append(contentsOf: piece.prefix(max(0, count)))
        }
    }

    // MARK: The process

    private func start(_ words: [[UInt8]], output: Int32) throws -> pid_t {
        try state.withLock { state in
            if state.isCancelled || state.signal != 0 { throw CancellationError() }
            var start = ProcessStart(words: words)
            start.descriptors = [STDIN_FILENO, output, STDERR_FILENO]
            do throws(FileError) {
                let pid = try start.start()
                state.pid = pid
                return pid
            } catch {
                throw InputOutputError(message: "cannot \(error)")
            }
        }
    }

    private func waitForExit(of pid: pid_t) throws -> ProcessEnd {
        // Keep the process as a zombie until `pid` is nil, so that its process ID is not reused.
        var info = siginfo_t()
        while waitid(P_PID, id_t(pid), &info, CInt(WEXITED | WNOWAIT)) < 0, errno == EINTR {}
        return try state.withLock {
            $0.pid = nil
            return try ProcessEnd.wait(for: pid)
        }
    }

    private func terminate() { state.withLock { _ = $0.pid.map { kill($0, SIGTERM) } } }

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

/// The keys that this program and its parents hold, in an environment variable that commands inherit.
enum ParentMarks {
    /// Adds a key to the variable.
    /// - Parameters:
    ///   - place: what the key belongs to, such as the database.
    ///   - state: what the parent does with the key, for the error.
    /// - Throws: if a parent process has added the same key: waiting for it would be a deadlock.
    static func add(_ key: [UInt8], of place: [String], to variable: String, _ state: String) throws(UsageError) {
        let mark = HexText.text(place.flatMap { Array($0.utf8) + [0] } + key)
        let marks = (getenv(variable).map { String(cString: $0) } ?? "").split(separator: ":").map(String.init)
        for other in marks {
            let parts = other.split(separator: "@")
            guard parts.count == 2, parts[0] == mark, let holder = pid_t(parts[1]), holder > 0 else { continue }
            // The mark may be outdated: the command may have started a background process that runs larderctl after the
            // key was released. So check whether the holder still runs.
            guard kill(holder, 0) == 0 || errno == EPERM else { continue }
            throw UsageError(
                "\(printableKey(key)) is \(state) by a parent of this process: they would wait for each other")
        }
        setenv(variable, (marks + ["\(mark)@\(getpid())"]).joined(separator: ":"), 1)
    }
}
