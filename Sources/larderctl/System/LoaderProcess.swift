// The command of `larderctl fetch`.

import LarderPlatform
import Synchronization

/// Runs a command and collects its standard output, a value. The command inherits standard input and error.
///
/// While the command runs, signals that would terminate this program are sent to the command, and then reported.
final class LoaderProcess: Sendable {
    enum End: Equatable {
        case exited(Int32)
        /// The command was terminated by a signal.
        case killed(signal: Int32)
        /// This program has received a signal to terminate.
        case interrupted(signal: Int32)
    }

    struct Result {
        let output: [UInt8]
        let end: End
    }

    /// The signals that are sent to the command, without those that this program ignores, for example because of nohup.
    private static let forwardedSignals = [SIGINT, SIGTERM, SIGHUP].filter { !ProcessStart.isIgnored($0) }

    private let pid: pid_t
    /// Held while a signal is sent, and while the command is reaped, because its process ID may be reused afterwards.
    private let lock = Lock()
    private let isRunning = Atomic<Bool>(true)
    /// The signal that this program has received; 0 if there was none.
    private let asked = Atomic<Int32>(0)
    /// The pipe into which a byte is written when a signal arrives and when the command has exited, to wake the reader.
    private let wakeEnd: Int32

    private init(_ pid: pid_t, _ wakeEnd: Int32) {
        self.pid = pid
        self.wakeEnd = wakeEnd
    }

    /// Runs a command until it exits.
    /// - Throws: if the command cannot be started, or is terminated because it writes more than a value may have.
    static func run(_ words: [[UInt8]]) throws(InputOutputError) -> Result {
        let (output, wake) = (try makePipe(), try makePipe())
        // Leave the `wake` pipe open, because a signal may arrive until this program exits.
        defer { close(output.read) }
        // Block signals before the command starts, so that none is lost.
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in forwardedSignals { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        var start = ProcessStart(words: words)
        start.descriptors = [STDIN_FILENO, output.write, STDERR_FILENO]
        let pid: pid_t
        do throws(FileError) {
            pid = try start.start()
        } catch {
            close(output.write)
            throw InputOutputError(message: "cannot \(error)")
        }
        close(output.write)
        let process = LoaderProcess(pid, wake.write)
        // The threads may outlive this call: `signals` runs until the program exits, `command` until the command does.
        _ = WorkThread(name: "signals") { process.forwardSignals() }
        _ = WorkThread(name: "command") { process.awaitEnd() }
        let bytes: [UInt8]
        do throws(InputOutputError) {
            bytes = try process.collect(output.read, wake.read)
        } catch {
            process.send(SIGTERM)
            throw error
        }
        // After a signal, do not wait for the command: it has received the signal too, and may need time.
        let signal = process.asked.load(ordering: .acquiring)
        return Result(output: bytes, end: signal == 0 ? process.reap() : .interrupted(signal: signal))
    }

    /// Terminates this program by the signal, so that the parent process sees that signal.
    static func endProgram(by number: Int32) -> Never {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, number)
        signal(number, SIG_DFL)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
        exit(128 + number)
    }

    private static func makePipe() throws(InputOutputError) -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw InputOutputError(message: "cannot create a pipe for the command: \(SystemErrorText.of(errno))")
        }
        // The command must not inherit these two descriptors, but only the copy that is its standard output.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    // MARK: Threads

    private func forwardSignals() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in Self.forwardedSignals { sigaddset(&signals, signal) }
        while true {
            var signal: Int32 = 0
            guard sigwait(&signals, &signal) == 0 else { continue }
            asked.store(signal, ordering: .releasing)
            if !send(signal) { Self.endProgram(by: signal) }
            wake()
        }
    }

    /// Sends a signal to the command.
    /// - Returns: false if the command has exited.
    @discardableResult
    private func send(_ signal: Int32) -> Bool {
        lock.withLock { isRunning.load(ordering: .relaxed) && kill(pid, signal) == 0 }
    }

    private func awaitEnd() {
        var info = siginfo_t()
        // WNOWAIT keeps the exited process as a zombie, so that its process ID is not reused.
        while waitid(P_PID, id_t(pid), &info, CInt(WEXITED | WNOWAIT)) < 0, errno == EINTR {}
        wake()
    }

    private func wake() {
        var byte: UInt8 = 0
        _ = write(wakeEnd, &byte, 1)
    }

    private func reap() -> End {
        let end = lock.withLock {
            isRunning.store(false, ordering: .relaxed)
            return try? ProcessEnd.wait(for: pid)
        }
        return switch end {
        case .exited(let code): .exited(code)
        case .killed(let signal): .killed(signal: signal)
        case nil: .exited(-1)
        }
    }

    /// Whether to stop reading the output. If the command was killed, the output is not used, so need not be complete.
    /// - Parameter isComplete: whether the end of the pipe was reached. Until then, background processes of the command
    ///   may write to the pipe.
    private func isOver(isComplete: Bool) -> Bool {
        if asked.load(ordering: .acquiring) != 0 { return true }
        var info = siginfo_t()
        let options = CInt(WEXITED | WNOWAIT | WNOHANG)
        guard waitid(P_PID, id_t(pid), &info, options) == 0, info.si_signo == SIGCHLD else { return false }
        return isComplete || Int(info.si_code) != Int(CLD_EXITED)
    }

    // MARK: Output of the command

    /// Reads the output until all writers have closed the pipe and the command has exited, or until it is not needed.
    private func collect(_ pipe: Int32, _ wakes: Int32) throws(InputOutputError) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        var entries = [pipe, wakes].map { pollfd(fd: $0, events: Int16(truncatingIfNeeded: POLLIN), revents: 0) }
        while true {
            guard poll(&entries, nfds_t(entries.count), -1) > 0 else { continue }
            if entries[1].revents != 0 {
                _ = read(wakes, &piece, 1)
                if isOver(isComplete: entries[0].fd < 0) { return bytes }
            }
            guard entries[0].revents != 0 else { continue }
            let count = read(pipe, &piece, piece.count)
            if count == 0 {
                // poll(2) ignores entries with a negative descriptor.
                entries[0].fd = -1
                entries[0].revents = 0
                if isOver(isComplete: true) { return bytes }
            }
            if count <= 0 { continue }
            guard bytes.count + count <= Input.bytesMax else {
                throw InputOutputError(
                    message: "the command wrote more than \(Input.bytesMax) bytes, the limit of a value")
            }
            bytes.append(contentsOf: piece[..<count])
        }
    }
}
