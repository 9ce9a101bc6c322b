import LarderPlatform
import Synchronization

/// The terminal of a full-screen program, with its size, keys and signals. Creating it switches to the alternate
/// screen; ``close()`` restores the previous screen.
///
/// For one thread at a time, except for ``wake()``. A second thread waits for signals.
final class Terminal: Sendable {
    enum Event: Equatable {
        case key(UInt8)
        case resized
        /// ``wake()`` was called.
        case woken
        /// The time to wait is over.
        case timeout
        /// The program has received a signal to terminate, or the terminal was closed (SIGHUP).
        case ended(signal: Int32)
    }

    // The escape sequences that switch to the alternate screen and hide the cursor, and that undo this.
    private static let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J"
    private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

    private let before: termios
    private let signals: Pipe
    private let isTaken = Atomic<Bool>(false)

    /// - Throws: if standard input or standard output is not a terminal.
    init() throws {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
            throw UsageError("this needs a terminal; without one: larderctl stats --watch, or --json")
        }
        let kind = getenv("TERM").map { String(cString: $0) } ?? ""
        guard !kind.isEmpty, kind != "dumb" else {
            throw UsageError(
                "this needs a terminal with a cursor, and \(kind.isEmpty ? "TERM is not set" : "TERM is dumb"); without one: "
                    + "larderctl stats --watch, or --json")
        }
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else {
            throw InputOutputError("cannot read the terminal's settings")
        }
        before = settings
        let signals = try Pipe(for: "signals")
        self.signals = signals
        SignalSet([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGCONT], leavesIgnored: false)
            .watch { signals.send($0) }
        take()
    }

    /// Restores the screen and the terminal's settings. May be called repeatedly.
    func close() {
        guard isTaken.exchange(false, ordering: .relaxed) else { return }
        put(Self.leave)
        var settings = before
        tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
    }

    private func take() {
        var settings = before
        // Read each key without waiting for a line break, and without echo. Ctrl-C and Ctrl-Z still send signals.
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
        isTaken.store(true, ordering: .relaxed)
        put(Self.enter)
    }

    /// The number of columns and rows; 80 and 24 if unknown.
    static var size: (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Draws lines from the top of the screen. Clears the rest of each line and of the screen.
    func draw(_ lines: [String]) {
        var text = "\u{1B}[H"
        for (index, line) in lines.enumerated() {
            text += (index > 0 ? "\r\n" : "") + line + "\u{1B}[0m\u{1B}[K"
        }
        put(text + "\u{1B}[J")
    }

    /// Waits for a key, a signal or the timeout. Restores the screen while the program is suspended by Ctrl-Z.
    func wait(milliseconds: Int64) -> Event {
        let end = MonotonicClock.milliseconds() + milliseconds
        while true {
            let left = max(0, end - MonotonicClock.milliseconds())
            let ready = Descriptor.poll(Descriptor.keys, signals.readEnd, milliseconds: left)
            if ready[1], let signal = signals.receive() { return handle(signal) }
            guard ready[0] else {
                if MonotonicClock.milliseconds() >= end { return .timeout }
                continue
            }
            var byte: UInt8 = 0
            let got = read(Descriptor.keys, &byte, 1)
            if got == 1 { return .key(byte) }
            if got == 0 || errno != EINTR && errno != EAGAIN { return .ended(signal: SIGHUP) }
        }
    }

    /// Makes ``wait(milliseconds:)`` return ``Event/woken``. Thread-safe.
    func wake() { signals.send() }

    private func handle(_ signal: Int32) -> Event {
        switch signal {
        case 0: return .woken
        case SIGWINCH: return .resized
        case SIGCONT:
            // The shell may have changed the terminal's settings.
            take()
            return .resized
        case SIGTSTP:
            close()
            // Stops the process here until the shell resumes it.
            kill(getpid(), SIGSTOP)
            take()
            return .resized
        default: return .ended(signal: signal)
        }
    }

    private func put(_ text: String) {
        try? FileSystem.writeAll(Array(text.utf8), descriptor: STDOUT_FILENO, path: "the terminal")
    }
}
