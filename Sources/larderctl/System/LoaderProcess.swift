// The command of `larderctl fetch`.

import LarderPlatform
import Synchronization

/// Runs a command and collects its standard output, a value. The command inherits standard input and error.
///
/// While the command runs, signals that would terminate this program are sent to the command, and then reported.
final class LoaderProcess: Sendable {
    struct Result {
        let output: [UInt8]
        /// How the command has ended; nil if it may still run, because this program has received a signal to terminate.
        let end: ProcessEnd?
        /// That signal; 0 if there was none.
        let signal: Int32
    }

    private let pid: pid_t
    /// Held while a signal is sent, and while the command is reaped, because its process ID may be reused afterwards.
    private let lock = Lock()
    private let isRunning = Atomic<Bool>(true)
    /// The signal that this program has received; 0 if there was none.
    private let asked = Atomic<Int32>(0)
    /// The pipe into which a byte is written when a signal arrives and when the command has exited, to wake the reader.
    private let wakes: Pipe

    private init(_ pid: pid_t, _ wakes: Pipe) { (self.pid, self.wakes) = (pid, wakes) }

    /// Runs a command until it exits.
    /// - Throws: if the command cannot be started, or is terminated because it writes more than a value may have.
    static func run(_ words: [[UInt8]]) throws(InputOutputError) -> Result {
        // Leave the pipe `wakes` open, because a signal may arrive until this program exits. The command inherits neither
        // pipe, but only the copy that is its standard output.
        let (output, wakes) = (try Pipe(for: "the command"), try Pipe(for: "the command"))
        // Block the signals that are sent to the command before it starts, so that none is lost.
        let signals = SignalSet([SIGINT, SIGTERM, SIGHUP])
        signals.block()
        defer { close(output.readEnd) }
        let pid = try { () throws(InputOutputError) in
            defer { close(output.writeEnd) }
            return try ChildCommand.start(words, output: output.writeEnd)
        }()
        let process = LoaderProcess(pid, wakes)
        // The threads may outlive this call: `signals` runs until the program exits, `command` until the command does.
        signals.watch { signal in
            process.asked.store(signal, ordering: .releasing)
            if !process.send(signal) { SignalSet.endProgram(by: signal) }
            wakes.send()
        }
        _ = WorkThread(name: "command") {
            ChildCommand.awaitExit(pid)
            wakes.send()
        }
        let bytes: [UInt8]
        do throws(InputOutputError) {
            bytes = try process.collect(output.readEnd)
        } catch {
            process.send(SIGTERM)
            throw error
        }
        // After a signal, do not wait for the command: it has received the signal too, and may need time.
        let signal = process.asked.load(ordering: .acquiring)
        return Result(output: bytes, end: signal == 0 ? process.reap() : nil, signal: signal)
    }

    // MARK: Threads

    /// Sends a signal to the command.
    /// - Returns: false if the command has exited.
    @discardableResult
    private func send(_ signal: Int32) -> Bool {
        lock.withLock { isRunning.load(ordering: .relaxed) && kill(pid, signal) == 0 }
    }

    private func reap() -> ProcessEnd {
        lock.withLock {
            isRunning.store(false, ordering: .relaxed)
            return (try? ProcessEnd.wait(for: pid)) ?? .exited(-1)
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
    private func collect(_ output: Int32) throws(InputOutputError) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        var isComplete = false
        while true {
            let ready = Descriptor.poll(isComplete ? -1 : output, wakes.readEnd)
            if ready[1] {
                _ = wakes.receive()
                if isOver(isComplete: isComplete) { return bytes }
            }
            guard ready[0] else { continue }
            let count = read(output, &piece, piece.count)
            if count == 0 {
                isComplete = true
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
