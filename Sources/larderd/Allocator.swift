#if LARDER_JEMALLOC
    import CAllocator
#endif

/// The allocator of this process.
enum Allocator {
    /// For the log: memory figures depend on it.
    static var name: String {
        #if LARDER_JEMALLOC
            "jemalloc " + String(cString: larder_allocator_version())
        #else
            "the system's allocator"
        #endif
    }
}
