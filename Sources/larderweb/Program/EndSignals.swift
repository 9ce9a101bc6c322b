import LarderPlatform

/// The signals that stop the program: SIGTERM, SIGINT and SIGHUP. SIGHUP is left out if it was ignored at the start,
/// for example because of nohup.
///
/// Must be created before other threads start. Confined to the main thread.
struct EndSignals {
    private let signals: SignalSet

    init() {
        // The parent process may have set these signals to be ignored, and `wait` would then not receive them.
        for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
        signals = SignalSet([SIGTERM, SIGINT, SIGHUP])
        signals.block()
    }

    /// Waits for a signal, and runs `work` periodically.
    /// - Returns: the signal's name.
    func wait(every milliseconds: Int64, _ work: () -> Void) -> String {
        while true {
            switch signals.wait(milliseconds: milliseconds) {
            case SIGTERM: return "SIGTERM"
            case SIGINT: return "SIGINT"
            case SIGHUP: return "SIGHUP"
            default: work()
            }
        }
    }
}
