/// Signals that a program receives by waiting for them, instead of in handlers, which would interrupt other threads.
package struct SignalSet: Sendable {
    private var signals = sigset_t()

    /// - Parameter leavesIgnored: whether to leave out the signals that this process ignores, for example because of
    ///   nohup(1).
    package init(_ numbers: [Int32], leavesIgnored: Bool = true) {
        sigemptyset(&signals)
        for number in numbers where !leavesIgnored || !ProcessStart.isIgnored(number) { sigaddset(&signals, number) }
    }

    /// Blocks the signals in this thread, and in those that it starts later. Only blocked signals can be waited for.
    package func block() {
        var signals = signals
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Blocks the signals, and calls `body` for each of them on another thread, until the program exits.
    package func watch(_ body: @escaping @Sendable (Int32) -> Void) {
        block()
        _ = WorkThread(name: "signals") {
            while true { body(wait()) }
        }
    }

    private func wait() -> Int32 {
        var (signals, number) = (signals, Int32(0))
        while sigwait(&signals, &number) != 0 {}
        return number
    }

    /// Waits for a signal, for at most the given time (macOS: without a limit).
    /// - Returns: nil if none has arrived.
    package func wait(milliseconds: Int64) -> Int32? {
        #if os(Linux)
            var signals = signals
            var time = timespec(tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
            let number = sigtimedwait(&signals, nil, &time)
            return number > 0 ? number : nil
        #else
            return wait()
        #endif
    }

    /// Terminates this program by a signal, so that the parent process sees that signal.
    package static func endProgram(by number: Int32) -> Never {
        var signals = SignalSet([number], leavesIgnored: false).signals
        signal(number, SIG_DFL)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
        exit(128 + number)
    }
}
