import CLarderUV
import LarderPlatform

/// The thread of an origin. It runs a libuv event loop, and closures that other threads send to it.
///
/// `@unchecked Sendable`: `mail` and `isOver` are guarded by `lock`; everything else is used by this thread only.
final class OriginLoop: @unchecked Sendable {
    let uv: UnsafeMutablePointer<uv_loop_t>
    private let wakeUp: UnsafeMutablePointer<uv_async_t>
    private let beforePolling: UnsafeMutablePointer<uv_prepare_t>
    private let lock = Lock()
    private var mail: [@Sendable () -> Void] = []
    private var isOver = false
    /// The closures taken from `mail`, and the index of the closure to run next.
    private var taken: [@Sendable () -> Void] = []
    private var nextMail = 0
    private static let mailPerTurn = 1_000
    /// The closures to run before the loop waits for events.
    private var atEndOfTurn: [() -> Void] = []

    /// Starts the thread.
    init() {
        uv = .allocate(capacity: 1)
        wakeUp = .allocate(capacity: 1)
        beforePolling = .allocate(capacity: 1)
        let status = uv_loop_init(uv)
        precondition(status == 0, "uv_loop_init failed with \(status)")
        // An unretained reference is enough, because the thread retains this object until all handles are closed.
        let context = Unmanaged.passUnretained(self).toOpaque()
        let opened = uv_async_init(uv, wakeUp) { OriginLoop.from($0?.pointee.data)?.readMail() }
        precondition(opened == 0, "uv_async_init failed with \(opened)")
        wakeUp.pointee.data = context
        uv_prepare_init(uv, beforePolling)
        beforePolling.pointee.data = context
        uv_prepare_start(beforePolling) { OriginLoop.from($0?.pointee.data)?.endTurn() }
        WorkThread(name: "larder-origin") { [self] in run() }.detach()
    }

    deinit {
        uv.deallocate()
        wakeUp.deallocate()
        beforePolling.deallocate()
    }

    private static func from(_ data: UnsafeMutableRawPointer?) -> OriginLoop? {
        data.map { Unmanaged<OriginLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    private func run() {
        uv_run(uv, UV_RUN_DEFAULT)
        uv_loop_close(uv)
    }

    /// Runs `work` on the loop's thread, in the order of the calls. May be called from any thread.
    /// - Returns: false after ``end()``; `work` is then not run.
    @discardableResult
    func send(_ work: @escaping @Sendable () -> Void) -> Bool {
        lock.withLock {
            guard !isOver else { return false }
            mail.append(work)
            // Call this with the lock held, because ``end()`` closes the handle with the lock held.
            if mail.count == 1 { uv_async_send(wakeUp) }
            return true
        }
    }

    private func readMail() {
        if nextMail == taken.count {
            nextMail = 0
            taken = lock.withLock {
                defer { mail = [] }
                return mail
            }
        }
        let end = min(taken.count, nextMail + Self.mailPerTurn)
        while nextMail < end {
            taken[nextMail]()
            nextMail += 1
        }
        // If closures are left, wake the loop again, so that it first handles sockets and timers.
        lock.withLock { if !isOver, nextMail < taken.count || !mail.isEmpty { uv_async_send(wakeUp) } }
        if nextMail == taken.count {
            taken = []
            nextMail = 0
        }
    }

    /// Runs `work` before the loop next waits for events. Call it on the loop's thread.
    func beforeWaiting(_ work: @escaping () -> Void) { atEndOfTurn.append(work) }

    private func endTurn() {
        while !atEndOfTurn.isEmpty {
            let works = atEndOfTurn
            atEndOfTurn = []
            for work in works { work() }
        }
    }

    /// Lets the thread terminate after all handles are closed. Call it on the loop's thread, as the last call.
    func end() {
        let rest: [@Sendable () -> Void]? = lock.withLock {
            guard !isOver else { return nil }
            isOver = true
            uv_close(asHandle(wakeUp), nil)
            defer { mail = [] }
            return mail
        }
        guard let rest else { return }
        for work in rest { work() }
        uv_close(asHandle(beforePolling), nil)
    }
}

/// Casts a pointer to a libuv handle. All handle types begin with the fields of `uv_handle_t`.
func asHandle<Handle>(_ handle: UnsafeMutablePointer<Handle>) -> UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
}
