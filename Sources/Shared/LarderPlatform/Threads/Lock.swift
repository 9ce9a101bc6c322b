// Locks and condition variables for code that shares memory between threads.
//
// `Lock` is a heap-allocated pthread mutex. `Synchronization.Mutex` is slower without contention (17 ns compared with 7
// ns, measured on Linux), and ThreadSanitizer reports false races with it. So nothing uses it.

import Synchronization

/// A mutual-exclusion lock. Not recursive: a thread that locks it twice waits forever.
///
/// Thread-safe. `@unchecked Sendable`: the only state is the pthread mutex, at a fixed heap address.
@usableFromInline package final class Lock: @unchecked Sendable {
    @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>

    package init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        let status = pthread_mutex_init(mutex, nil)
        precondition(status == 0, "pthread_mutex_init failed with \(status)")
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @inlinable package func lock() { pthread_mutex_lock(mutex) }
    /// Takes the lock if it is free. Returns whether it did.
    @inlinable package func tryLock() -> Bool { pthread_mutex_trylock(mutex) == 0 }
    @inlinable package func unlock() { pthread_mutex_unlock(mutex) }

    /// Runs `body` with the lock held.
    @inlinable package func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }
}

/// A value with its lock. Like `Synchronization.Mutex`, but with a ``Lock``: ThreadSanitizer sees how it locks.
///
/// The value must not be a function, an optional function, or a tuple that contains one: put the function into a struct.
/// Generic code stores functions in another form, so each ``withLock(_:)`` would wrap such a value in two more closures,
/// and a call of the function would finally exceed the stack.
///
/// Thread-safe. `@unchecked Sendable`: the value is accessed only with the lock held, and `sending` keeps parts of it
/// from being shared.
package struct Locked<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let lock = Lock()
    private let value: UnsafeMutablePointer<Value>

    package init(_ value: consuming sending Value) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
    }

    /// Runs `body` with the lock held.
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value.pointee)
    }

    /// Like ``withLock(_:)``, but does not wait.
    /// - Returns: nil, without calling `body`, if the lock is held.
    package borrowing func withLockUnlessBusy<Result>(
        _ body: (inout sending Value) -> sending Result
    ) -> sending Result? {
        guard lock.tryLock() else { return nil }
        defer { lock.unlock() }
        return body(&value.pointee)
    }
}

/// A flag that is set once, and for which threads wait.
package final class Latch: Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private let isSet = Atomic(false)

    package init() {}

    package func set() {
        lock.withLock {
            isSet.store(true, ordering: .relaxed)
            changed.broadcast()
        }
    }

    /// Waits until the flag is set, for at most `milliseconds`.
    /// - Returns: whether the flag is set.
    @discardableResult
    package func wait(milliseconds: Int64 = .max / 2) -> Bool {
        let end = MonotonicClock.milliseconds() + milliseconds
        return lock.withLock {
            while !isSet.load(ordering: .relaxed), case let left = end - MonotonicClock.milliseconds(), left > 0 {
                changed.wait(lock, milliseconds: left)
            }
            return isSet.load(ordering: .relaxed)
        }
    }
}

/// A condition variable used with a ``Lock``. Changes of the system's time do not affect timeouts.
///
/// Thread-safe. `@unchecked Sendable` for the same reason as ``Lock``.
package final class Condition: @unchecked Sendable {
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    package init() {
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        #if os(Linux)
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        #endif
        let status = pthread_cond_init(condition, &attributes)
        precondition(status == 0, "pthread_cond_init failed with \(status)")
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    package func signal() { pthread_cond_signal(condition) }
    package func broadcast() { pthread_cond_broadcast(condition) }

    /// Releases `lock`, waits for a signal, and takes `lock` again. May return without a signal: test the condition.
    package func wait(_ lock: Lock) { pthread_cond_wait(condition, lock.mutex) }

    /// Like ``wait(_:)``, for at most `milliseconds`.
    /// - Returns: false after the timeout.
    @discardableResult
    package func wait(_ lock: Lock, milliseconds: Int64) -> Bool {
        #if os(Linux)
            var until = timespec()
            clock_gettime(CLOCK_MONOTONIC, &until)
            add(milliseconds, to: &until)
            return pthread_cond_timedwait(condition, lock.mutex, &until) == 0
        #else
            var span = timespec()
            add(milliseconds, to: &span)
            return pthread_cond_timedwait_relative_np(condition, lock.mutex, &span) == 0
        #endif
    }

    private func add(_ milliseconds: Int64, to time: inout timespec) {
        // Limit the timeout to a day, which is enough for all callers, so that the sum cannot overflow.
        let bounded = min(max(milliseconds, 0), 86_400_000)
        time.tv_sec += Int(bounded / 1000)
        time.tv_nsec += Int(bounded % 1000) * 1_000_000
        if time.tv_nsec >= 1_000_000_000 {
            time.tv_sec += 1
            time.tv_nsec -= 1_000_000_000
        }
    }
}

/// A lock for many readers or one writer. A waiting writer takes precedence over new readers, so that readers cannot
/// starve it. So a thread that reads must not take the lock again: a waiting writer would cause a deadlock.
///
/// Thread-safe. `@unchecked Sendable`: the only state is the pthread lock, at a fixed heap address.
@usableFromInline package final class ReadWriteLock: @unchecked Sendable {
    @usableFromInline let handle: UnsafeMutablePointer<pthread_rwlock_t>

    package init() {
        handle = .allocate(capacity: 1)
        handle.initialize(to: pthread_rwlock_t())
        #if canImport(Glibc)
            var attributes = pthread_rwlockattr_t()
            pthread_rwlockattr_init(&attributes)
            pthread_rwlockattr_setkind_np(&attributes, Int32(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP))
            let status = pthread_rwlock_init(handle, &attributes)
            pthread_rwlockattr_destroy(&attributes)
        #else
            let status = pthread_rwlock_init(handle, nil)
        #endif
        precondition(status == 0, "pthread_rwlock_init failed with \(status)")
    }

    deinit {
        pthread_rwlock_destroy(handle)
        handle.deallocate()
    }

    /// Runs `body` with the lock held for reading. Other readers may run concurrently.
    @inlinable package func withReadLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_rwlock_rdlock(handle)
        defer { pthread_rwlock_unlock(handle) }
        return try body()
    }

    /// Like ``withReadLock(_:)``, but does not wait.
    /// - Returns: nil, without calling `body`, if a writer holds the lock or waits for it.
    @inlinable package func withReadLockUnlessBusy<Result>(_ body: () -> Result) -> Result? {
        guard pthread_rwlock_tryrdlock(handle) == 0 else { return nil }
        defer { pthread_rwlock_unlock(handle) }
        return body()
    }

    /// Runs `body` with the lock held for writing. No other reader or writer runs concurrently.
    @inlinable package func withWriteLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_rwlock_wrlock(handle)
        defer { pthread_rwlock_unlock(handle) }
        return try body()
    }

    /// Takes the lock for writing, if a closure cannot be used. Release it with ``unlock()`` on the same thread.
    package func lockForWriting() { pthread_rwlock_wrlock(handle) }
    package func unlock() { pthread_rwlock_unlock(handle) }
}
