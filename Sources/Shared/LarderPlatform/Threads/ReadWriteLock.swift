/// Many readers or one writer. A waiting writer takes precedence over new readers, so a stream of readers cannot starve
/// it; for the same reason a reader must not take the lock for reading again.
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

    /// Runs `body` while any number of other readers may run.
    @inlinable package func withReadLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_rwlock_rdlock(handle)
        defer { pthread_rwlock_unlock(handle) }
        return try body()
    }

    /// Like ``withReadLock(_:)``, unless that would wait.
    /// - Returns: nil if a writer runs or waits; then `body` was not called.
    @inlinable package func withReadLockUnlessBusy<Result>(_ body: () -> Result) -> Result? {
        guard pthread_rwlock_tryrdlock(handle) == 0 else { return nil }
        defer { pthread_rwlock_unlock(handle) }
        return body()
    }

    /// Runs `body` while no other reader or writer runs.
    @inlinable package func withWriteLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_rwlock_wrlock(handle)
        defer { pthread_rwlock_unlock(handle) }
        return try body()
    }

    /// Takes the lock where a closure cannot be used. Release it with ``unlock()`` on the same thread.
    package func lockForWriting() { pthread_rwlock_wrlock(handle) }
    package func unlock() { pthread_rwlock_unlock(handle) }
}
