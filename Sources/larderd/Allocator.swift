#if LARDER_JEMALLOC
    import CAllocator
#endif

/// Who serves this process's memory.
enum Allocator {
    /// For the log: what a memory figure has to be read with.
    static var name: String {
        #if LARDER_JEMALLOC
            "jemalloc " + String(cString: larder_allocator_version())
        #else
            "the system's allocator"
        #endif
    }
}
