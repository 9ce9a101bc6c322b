/// A named system thread that runs one closure and terminates. For work that may block, and therefore must not run on
/// Swift's cooperative thread pool.
///
/// Thread-safe: any other thread may call `join()`, but only once.
package final class WorkThread: Sendable {
    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }
    }

    private let handle: SendableThread

    /// Starts a thread.
    /// - Parameter name: the name in `top -H` and debuggers, cut to 15 bytes.
    package init(name: String, body: @escaping @Sendable () -> Void) {
        let context = Unmanaged.passRetained(Start(name: name, body: body)).toOpaque()
        #if canImport(Darwin)
            var thread: pthread_t?
            let status = pthread_create(&thread, nil, { runThread($0) }, context)
            guard status == 0, let thread else { Self.giveUp(name, status) }
            handle = SendableThread(thread: thread)
        #else
            var thread = pthread_t()
            let status = pthread_create(&thread, nil, { runThread($0) }, context)
            guard status == 0 else { Self.giveUp(name, status) }
            handle = SendableThread(thread: thread)
        #endif
    }

    /// Terminates the process with a message. Called if the thread cannot be started, because the caller depends on it.
    private static func giveUp(_ name: String, _ status: Int32) -> Never {
        let line = Array("larder: the thread '\(name)' cannot be started: \(shortage(status))\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
        abort()
    }

    /// Returns why no thread can be started, and which limits to raise.
    private static func shortage(_ status: Int32) -> String {
        "\(SystemErrorText.of(status)). The limit of processes and threads (ulimit -u, a service's TasksMax) or of memory "
            + "(ulimit -v) is too low"
    }

    /// Checks whether `count` threads can run at the same time, by starting them. Waits until they have terminated.
    /// - Returns: nil if they can, otherwise the reason why not.
    package static func shortage(ofThreads count: Int) -> String? {
        let lock = Lock()
        // The threads wait for this lock, so that all of them exist at the same time.
        lock.lock()
        let context = Unmanaged.passUnretained(lock).toOpaque()
        var threads: [SendableThread] = []
        var status: Int32 = 0
        while status == 0, threads.count < count {
            #if canImport(Darwin)
                var thread: pthread_t?
                status = pthread_create(&thread, nil, { waitForLock($0) }, context)
                if let thread { threads.append(SendableThread(thread: thread)) }
            #else
                var thread = pthread_t()
                status = pthread_create(&thread, nil, { waitForLock($0) }, context)
                if status == 0 { threads.append(SendableThread(thread: thread)) }
            #endif
        }
        lock.unlock()
        for thread in threads { pthread_join(thread.thread, nil) }
        if status == 0 { return nil }
        return "only \(threads.count) of \(count) threads can be started: \(shortage(status))"
    }

    /// Suspends the calling thread. A signal may wake it early.
    package static func sleep(nanoseconds: UInt64) {
        var time = timespec()
        time.tv_sec = Int(nanoseconds / 1_000_000_000)
        time.tv_nsec = Int(nanoseconds % 1_000_000_000)
        nanosleep(&time, nil)
    }

    /// Waits until the closure has returned and the thread has terminated.
    package func join() { pthread_join(handle.thread, nil) }

    /// Frees the thread's resources when it terminates. Call it instead of ``join()`` if nothing waits for the thread.
    package func detach() { pthread_detach(handle.thread) }

    fileprivate static func run(_ context: UnsafeMutableRawPointer) {
        let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
        #if canImport(Darwin)
            pthread_setname_np(start.name)
        #else
            // Swift's Glibc module lacks pthread_setname_np, so write the name to this file of the kernel.
            let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
            if file >= 0 {
                let name = Array(start.name.utf8.prefix(15))
                _ = write(file, name, name.count)
                close(file)
            }
        #endif
        start.body()
    }
}

/// Makes `pthread_t` Sendable: it is a pointer on Darwin, but any thread may use it.
private struct SendableThread: @unchecked Sendable {
    let thread: pthread_t
}

private func waitForLock(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    // The lock lives until the thread is joined.
    if let context { Unmanaged<Lock>.fromOpaque(context).takeUnretainedValue().withLock {} }
    return nil
}

private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let context { WorkThread.run(context) }
    return nil
}
