import LarderPlatform

/// SIGTERM and SIGINT, which end the program; SIGHUP too, unless the parent had it ignored, as nohup does.
///
/// Made before other threads begin. Confined to the main thread.
struct EndSignals {
    private var signals = sigset_t()

    init() {
        sigemptyset(&signals)
        let all = [SIGTERM, SIGINT] + (ProcessStart.isIgnored(SIGHUP) ? [] : [SIGHUP])
        for number in all {
            // What the parent ignores would never come.
            signal(number, SIG_DFL)
            sigaddset(&signals, number)
        }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Waits for one of them, and does something meanwhile.
    /// - Returns: its name.
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
