/// Time that passed, and time that processors spent.
enum Clocks {
    /// Seconds from some fixed instant.
    static func monotonic() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return seconds(time)
    }

    /// Processor seconds of all threads of this process, those that ended included, user and system.
    static func ownProcessor() -> Double {
        var usage = rusage()
        #if canImport(Glibc)
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #else
            getrusage(RUSAGE_SELF, &usage)
        #endif
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// Processor seconds of all threads of another process, those that ended included, user and system, as the
    /// scheduler counts them: in nanoseconds, not in ticks. Nil when the process is gone or the system cannot tell.
    static func processor(of process: pid_t) -> Double? {
        #if os(Linux)
            var clock = clockid_t()
            var time = timespec()
            guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return nil }
            return seconds(time)
        #else
            return nil
        #endif
    }

    static func sleep(_ seconds: Double) {
        var time = timespec()
        time.tv_sec = Int(seconds)
        time.tv_nsec = Int((seconds - Double(time.tv_sec)) * 1e9)
        nanosleep(&time, nil)
    }

    /// Waits until a process has come to rest, so that the work that an operation left behind (compactions, mostly) is
    /// counted with it and does not disturb the next measurement.
    /// - Parameter processor: the processor seconds of the process.
    static func settle(most limit: Double = 10, _ processor: () -> Double?) {
        let step = 0.03
        let end = monotonic() + limit
        var before = processor()
        var quiet = 0
        while quiet < 2, monotonic() < end, !Interruption.isRequested {
            sleep(step)
            guard let start = before, let now = processor() else { return }
            // Timers and idle loops take far less than a hundredth of a processor.
            quiet = now - start < step * 0.02 ? quiet + 1 : 0
            before = now
        }
    }

    private static func seconds(_ time: timespec) -> Double { Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 }
    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
}
