import CLarderUV
import LarderPlatform

/// The thread of an origin: a libuv loop, and work that other threads send to it.
///
/// `@unchecked Sendable`: the mailbox is guarded by `lock`; everything else is confined to the thread.
final class OriginLoop: @unchecked Sendable {
    let uv: UnsafeMutablePointer<uv_loop_t>
    private let wakeUp: UnsafeMutablePointer<uv_async_t>
    private let beforePolling: UnsafeMutablePointer<uv_prepare_t>
    private let lock = Lock()
    private var mail: [@Sendable () -> Void] = []
    private var isOver = false
    /// Work taken out of the mailbox, and the index of the next item.
    private var taken: [@Sendable () -> Void] = []
    private var nextMail = 0
    private static let mailPerTurn = 1_000
    /// Work for the end of the turn.
    private var atEndOfTurn: [() -> Void] = []

    /// Starts the thread.
    init() {
        uv = .allocate(capacity: 1)
        wakeUp = .allocate(capacity: 1)
        beforePolling = .allocate(capacity: 1)
        let status = uv_loop_init(uv)
        precondition(status == 0, "uv_loop_init failed with \(status)")
        // The thread keeps this object alive for longer than the handles, so an unretained reference is enough.
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

    /// Runs `work` on the thread, in the order of the calls. May be called from any thread.
    /// - Returns: false, without an effect, after ``end()``.
    @discardableResult
    func send(_ work: @escaping @Sendable () -> Void) -> Bool {
        lock.withLock {
            guard !isOver else { return false }
            mail.append(work)
            // Inside the lock, because the handle is closed inside the lock too.
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
        // Continue with the rest after sockets and timers have been served.
        lock.withLock { if !isOver, nextMail < taken.count || !mail.isEmpty { uv_async_send(wakeUp) } }
        if nextMail == taken.count {
            taken = []
            nextMail = 0
        }
    }

    /// Runs `work` before the loop waits the next time. Called on the loop's thread.
    func beforeWaiting(_ work: @escaping () -> Void) { atEndOfTurn.append(work) }

    private func endTurn() {
        while !atEndOfTurn.isEmpty {
            let works = atEndOfTurn
            atEndOfTurn = []
            for work in works { work() }
        }
    }

    /// Lets the thread terminate once all handles are closed. Call it last, on the loop's thread.
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

/// All of libuv's handle types begin with the fields of `uv_handle_t`, so a pointer to one can be used as a pointer to
/// `uv_handle_t`.
func asHandle<Handle>(_ handle: UnsafeMutablePointer<Handle>) -> UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
}
