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
