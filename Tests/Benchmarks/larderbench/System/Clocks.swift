import LarderPlatform

/// Elapsed time and CPU time.
enum Clocks {
    /// Seconds from some fixed instant.
    static func monotonic() -> Double {
        Double(MonotonicClock.nanoseconds()) / 1e9
    }

    /// Seconds since 1970.
    static func wall() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return seconds(time)
    }

    /// Nanoseconds from some fixed instant.
    static func nanoseconds() -> UInt64 {
        UInt64(MonotonicClock.nanoseconds())
    }

    /// CPU seconds of the calling thread, user and system.
    static func ownThread() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return seconds(time)
    }

    /// CPU seconds of all threads of this process, including terminated ones, user and system.
    static func ownProcessor() -> Double {
        var usage = rusage()
        getrusage(ownUsage, &usage)
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// Returns the CPU seconds of all threads of another process, including terminated ones, user and system. They are
    /// measured by the scheduler in nanoseconds, not in ticks. Nil if the process has terminated or the system does not
    /// report them.
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

    /// Waits until a process is idle: it used less than a fiftieth of a CPU for `quiet` seconds. The work that an
    /// operation causes later (mostly compactions) is then measured with the operation, and does not disturb the next
    /// measurement.
    ///
    /// - Parameters:
    ///   - quiet: must be longer than the intervals at which servers start background work (a tenth and a quarter of a
    ///     second).
    ///   - limit: the maximum time to wait, in seconds.
    ///   - processor: returns the CPU seconds of the process.
    static func settle(quiet: Double = 0.3, most limit: Double = 120, _ processor: () -> Double?) {
        let step = 0.05
        let end = monotonic() + limit
        guard var before = processor() else { return }
        var quietSince = monotonic()
        while monotonic() < end, !Interruption.isRequested {
            sleep(step)
            guard let now = processor() else { return }
            let time = monotonic()
            if now - before > step * 0.02 { quietSince = time }
            if time - quietSince >= quiet { return }
            before = now
        }
    }

    /// Waits until a process has returned the memory that it freed: until its resident memory has not shrunk for three
    /// seconds, but at most half a minute.
    static func settleMemory(_ residentMiB: () -> Double?) throws(BenchError) {
        let end = monotonic() + 30
        var least = residentMiB() ?? 0
        var since = monotonic()
        while monotonic() < min(end, since + 3) {
            try Interruption.check()
            sleep(0.1)
            guard let resident = residentMiB(), resident < least - 0.5 else { continue }
            (least, since) = (resident, monotonic())
        }
    }

    private static func seconds(_ time: timespec) -> Double { Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 }
    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
}
