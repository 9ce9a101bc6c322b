#if LARDER_JEMALLOC
    import CLarderAllocator
#endif

/// The memory allocator of this process: jemalloc, or the system's.
enum Allocator {
    /// Starts the thread that returns free memory to the system.
    /// - Returns: false if that failed.
    static func startBackgroundThread() -> Bool {
        #if LARDER_JEMALLOC
            larder_allocator_start_thread()
        #else
            true
        #endif
    }

    /// The allocator's name for the log: memory figures depend on the allocator.
    static var name: String {
        #if LARDER_JEMALLOC
            "jemalloc " + String(cString: larder_allocator_version())
        #else
            "the system's allocator"
        #endif
    }
}
