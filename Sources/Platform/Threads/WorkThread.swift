/// A named system thread that runs one closure and ends. For work that may block, which must never run on Swift's
/// cooperative pool.
///
/// Thread-safe: `join()` may be called from any other thread, once.
package final class WorkThread: Sendable {
    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    private let handle: SendableThread

    /// Starts a thread.
    /// - Parameter name: shown by `top -H` and debuggers, cut to 15 bytes.
    package init(name: String, body: @escaping @Sendable () -> Void) {
        let context = Unmanaged.passRetained(Start(name: name, body: body)).toOpaque()
        #if canImport(Darwin)
            var thread: pthread_t?
            let status = pthread_create(&thread, nil, { runThread($0) }, context)
            precondition(status == 0, "pthread_create failed with \(status)")
            guard let thread else { preconditionFailure("pthread_create gave no thread") }
            handle = SendableThread(thread: thread)
        #else
            var thread = pthread_t()
            let status = pthread_create(&thread, nil, { runThread($0) }, context)
            precondition(status == 0, "pthread_create failed with \(status)")
            handle = SendableThread(thread: thread)
        #endif
    }

    /// Waits until the closure has returned.
    package func join() { pthread_join(handle.thread, nil) }

    fileprivate static func run(_ context: UnsafeMutableRawPointer) {
        let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
        #if canImport(Darwin)
            pthread_setname_np(start.name)
        #else
            // Glibc's module lacks pthread_setname_np; the kernel takes the name through this file as well.
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

/// `pthread_t` is a pointer on Darwin and so not Sendable; the handle itself may be used by any thread.
private struct SendableThread: @unchecked Sendable {
    let thread: pthread_t
}

private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let context { WorkThread.run(context) }
    return nil
}
