import LarderPlatform

/// The signals that stop the program: SIGTERM, SIGINT and SIGHUP. SIGHUP is left out if it was ignored at the start,
/// for example because of nohup.
///
/// Must be created before other threads start. Confined to the main thread.
struct EndSignals {
    private var signals = sigset_t()

    init() {
        sigemptyset(&signals)
        let all = [SIGTERM, SIGINT] + (ProcessStart.isIgnored(SIGHUP) ? [] : [SIGHUP])
        for number in all {
            // The parent process may have set the signal to be ignored, and `wait` would then not receive it.
            signal(number, SIG_DFL)
            sigaddset(&signals, number)
        }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Waits for a signal, and runs `work` periodically.
    /// - Returns: the signal's name.
    func wait(every milliseconds: Int, _ work: () -> Void) -> String {
        var signals = signals
        while true {
            #if os(Linux)
                var pause = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
                let number = sigtimedwait(&signals, nil, &pause)
            #else
                var number: Int32 = 0
                if sigwait(&signals, &number) != 0 { number = -1 }
            #endif
            switch number {
            case SIGTERM: return "SIGTERM"
            case SIGINT: return "SIGINT"
            case SIGHUP: return "SIGHUP"
            default: work()
            }
        }
    }
}
