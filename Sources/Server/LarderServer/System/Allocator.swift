import LarderPlatform

/// The allocator of this process: jemalloc if larderd is linked with it, otherwise the C library's.
///
/// Its functions are looked up by name, because no Swift module declares them, and not every process has them.
enum Allocator {
    /// The name for `mem_allocator` in INFO: `jemalloc-5.3.0`, or `libc`.
    static let name: String = {
        guard let control else { return "libc" }
        var version: UnsafePointer<CChar>?
        var size = MemoryLayout<UnsafePointer<CChar>?>.size
        // "version" returns a pointer to a text that is never freed: jemalloc(3).
        let status = withUnsafeMutablePointer(to: &version) { control("version", $0, &size, nil, 0) }
        guard status == 0, let version else { return "libc" }
        return "jemalloc-" + String(cString: version).prefix { $0 != "-" }
    }()

    /// Returns free memory to the system.
    static func giveBack() {
        if let control {
            // 4096 means all arenas (MALLCTL_ARENAS_ALL). Threads keep their own caches.
            _ = control("arena.4096.purge", nil, nil, nil, 0)
        } else if let symbol = dlsym(nil, "malloc_trim") {
            typealias Trim = @convention(c) (Int) -> Int32
            // This is the C library's own function, which has this signature wherever it exists.
            _ = unsafeBitCast(symbol, to: Trim.self)(0)
        }
    }

    private typealias Control =
        @convention(c) (
            UnsafePointer<CChar>?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?, Int
        ) -> Int32

    /// jemalloc's `mallctl`; nil with another allocator.
    private static let control: Control? = {
        // This is jemalloc's own function, which has this signature in all versions of jemalloc.
        dlsym(nil, "mallctl").map { unsafeBitCast($0, to: Control.self) }
    }()
}
