import LarderPlatform

/// The memory allocator of this process: jemalloc if larderd is linked with it, otherwise that of the C library.
///
/// Its functions are looked up by name at run time: no Swift module declares them, and not every process has them.
enum Allocator {
    /// The allocator's name as INFO shows it in `mem_allocator`: for example `jemalloc-5.3.0`, or `libc`.
    static let name: String = {
        guard let control else { return "libc" }
        var version: UnsafePointer<CChar>?
        var size = MemoryLayout<UnsafePointer<CChar>?>.size
        // The result is a pointer to a text that is never freed: see jemalloc(3).
        let status = withUnsafeMutablePointer(to: &version) { control("version", $0, &size, nil, 0) }
        guard status == 0, let version else { return "libc" }
        return "jemalloc-" + String(cString: version).prefix { $0 != "-" }
    }()

    /// Returns unused memory to the system.
    static func giveBack() {
        if let control {
            // 4096 means all arenas (MALLCTL_ARENAS_ALL). The caches of the threads are not affected.
            _ = control("arena.4096.purge", nil, nil, nil, 0)
        } else {
            ProcessMemory.trim()
        }
    }

    private typealias Control =
        @convention(c) (
            UnsafePointer<CChar>?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?, Int
        ) -> Int32

    /// jemalloc's function `mallctl`; nil if the process uses another allocator.
    private static let control: Control? = {
        // All versions of jemalloc declare this function with this signature.
        dlsym(nil, "mallctl").map { unsafeBitCast($0, to: Control.self) }
    }()
}
