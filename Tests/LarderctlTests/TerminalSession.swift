#if os(Linux)
    import LarderPlatform
    import LarderTestSupport

    /// A program with its own terminal. The test types on it and reads its output.
    ///
    /// Thread-safe. `@unchecked Sendable`: mutable state is guarded by the lock.
    final class TerminalSession: @unchecked Sendable {
        let pid: pid_t
        private let terminal: CInt
        private let lock = Lock()
        private let changed = Condition()
        private var bytes: [UInt8] = []
        private var searched = 0
        private var end: ProcessEnd?
        private static let patienceMilliseconds: Int64 = 60_000

        /// - Parameter words: a program and its arguments. The terminal becomes its controlling terminal.
        init(_ words: [String], width: Int, height: Int, environment: [String]) throws {
            terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            guard terminal >= 0 else { throw ChildProcess.Failure(description: "cannot open /dev/ptmx") }
            let side = open(try Larderctl.otherSide(of: terminal), O_RDWR | O_NOCTTY | O_CLOEXEC)
            guard side >= 0 else { throw ChildProcess.Failure(description: "cannot open the other side of a terminal") }
            defer { close(side) }
            Self.resize(terminal, width, height)
            var start = ProcessStart(
                ["setsid", "--ctty"] + words, environment: environment + ChildProcess.sanitizerOptions)
            start.descriptors = [side, side, side]
            start.closesBelow = 256
            pid = try start.start()
            _ = WorkThread(name: "terminal") { [self] in drain() }
            _ = WorkThread(name: "terminal-wait") { [self] in
                let found = try? ProcessEnd.wait(for: pid)
                lock.withLock {
                    end = found
                    changed.broadcast()
                }
            }
        }

        private func drain() {
            var piece = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(terminal, &piece, piece.count)
                // Reading from a terminal fails after the other side was closed.
                guard count > 0 else { return }
                lock.withLock {
                    bytes += piece[..<count]
                    changed.broadcast()
                }
            }
        }

        private static func resize(_ terminal: CInt, _ width: Int, _ height: Int) {
            var size = winsize(ws_row: UInt16(height), ws_col: UInt16(width), ws_xpixel: 0, ws_ypixel: 0)
            _ = ioctl(terminal, UInt(TIOCSWINSZ), &size)
        }

        /// Changes the terminal's size; the program gets SIGWINCH.
        func resize(_ width: Int, _ height: Int) { Self.resize(terminal, width, height) }

        func type(_ keys: [UInt8]) throws { try FileSystem.writeAll(keys, descriptor: terminal, path: "terminal") }

        /// Types a text, and waits until the terminal has received each of the `answers`, in this order.
        func type(_ text: String, _ answers: String...) throws {
            try type(Array(text.utf8))
            for answer in answers { try wait(for: answer) }
        }

        func send(_ signal: CInt) { kill(pid, signal) }

        /// Waits until the terminal receives a text, after the text of the previous wait.
        @discardableResult
        func wait(for text: String) throws -> String {
            let wanted = Array(text.utf8)
            // A deadline, because a full-screen program writes continuously.
            let deadline = MonotonicClock.milliseconds() + Self.patienceMilliseconds
            return try lock.withLock { () throws(ChildProcess.Failure) in
                while true {
                    let rest = bytes[searched...]
                    var start = rest.startIndex
                    while let place = rest[start...].firstIndex(of: wanted[0]) {
                        if rest[place...].starts(with: wanted) {
                            defer { searched = place + wanted.count }
                            return String(decoding: rest[..<(place + wanted.count)], as: UTF8.self)
                        }
                        start = place + 1
                    }
                    guard changed.wait(lock, milliseconds: max(1, deadline - MonotonicClock.milliseconds())),
                        MonotonicClock.milliseconds() < deadline
                    else {
                        throw ChildProcess.Failure(
                            description:
                                "the terminal does not get '\(text)' but \(String(decoding: rest.suffix(500), as: UTF8.self).debugDescription)"
                        )
                    }
                }
            }
        }

        func waitForEnd() throws -> ProcessEnd {
            try lock.withLock { () throws(ChildProcess.Failure) in
                while true {
                    if let end { return end }
                    guard changed.wait(lock, milliseconds: Self.patienceMilliseconds) else {
                        kill(pid, SIGKILL)
                        throw ChildProcess.Failure(description: "it does not end")
                    }
                }
            }
        }

        /// Whether the program reads single keys without echo.
        var isRaw: Bool {
            var settings = termios()
            tcgetattr(terminal, &settings)
            return settings.c_lflag & tcflag_t(ICANON | ECHO) == 0
        }

        /// Whether the process is stopped, for example by SIGSTOP.
        var isStopped: Bool {
            let text = (try? FileSystem.read("/proc/\(pid)/stat")).flatMap { $0 }.map {
                String(decoding: $0, as: UTF8.self)
            }
            return text?.split(separator: ")").last?.hasPrefix(" T") == true
        }
    }
#endif
