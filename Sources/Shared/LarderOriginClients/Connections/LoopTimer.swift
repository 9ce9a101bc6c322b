import CLarderUV

/// Calls a closure after a delay. Used on the loop's thread only. Close it before you release it.
final class LoopTimer {
    private let loop: OriginLoop
    private var handle: UnsafeMutablePointer<uv_timer_t>?
    private let action: () -> Void

    init(_ loop: OriginLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
        let handle = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        uv_timer_init(loop.uv, handle)
        self.handle = handle
        handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit { close() }

    /// Starts or restarts the timer: it calls the closure in `milliseconds` from now.
    func start(milliseconds: Int) {
        guard let handle else { return }
        // libuv's clock does not advance while the loop handles events, so update it.
        uv_update_time(loop.uv)
        uv_timer_start(
            handle,
            { handle in
                guard let data = handle?.pointee.data else { return }
                Unmanaged<LoopTimer>.fromOpaque(data).takeUnretainedValue().action()
            }, UInt64(max(0, milliseconds)), 0)
    }

    func stop() { if let handle { uv_timer_stop(handle) } }

    /// Closes the timer. May be called repeatedly.
    func close() {
        guard let handle else { return }
        self.handle = nil
        uv_close(asHandle(handle)) { handle in
            UnsafeMutableRawPointer(handle)?.assumingMemoryBound(to: uv_timer_t.self).deallocate()
        }
    }
}
