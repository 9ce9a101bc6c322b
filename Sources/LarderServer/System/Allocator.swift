/// Who serves this process's memory: jemalloc where larderd is linked with it, else the C library.
///
/// Its functions are looked up by name, because no module of Swift's declares them, and not every process has them.
enum Allocator {
    /// As INFO's `mem_allocator` has it: `jemalloc-5.3.0`, or `libc`.
    static let name: String = {
        guard let control else { return "libc" }
        var version: UnsafePointer<CChar>?
        var size = MemoryLayout<UnsafePointer<CChar>?>.size
        // "version" gives a pointer to a text that stays: jemalloc(3).
        let status = withUnsafeMutablePointer(to: &version) { control("version", $0, &size, nil, 0) }
        guard status == 0, let version else { return "libc" }
        return "jemalloc-" + String(cString: version).prefix { $0 != "-" }
    }()

    /// Gives the system back what is free.
    static func giveBack() {
        if let control {
            // 4096 stands for all arenas (MALLCTL_ARENAS_ALL); what threads keep for themselves stays theirs.
            _ = control("arena.4096.purge", nil, nil, nil, 0)
        } else if let symbol = dlsym(nil, "malloc_trim") {
            typealias Trim = @convention(c) (Int) -> Int32
            // The C library's own function, which has this signature wherever it exists.
            _ = unsafeBitCast(symbol, to: Trim.self)(0)
        }
    }

    private typealias Control =
        @convention(c) (
            UnsafePointer<CChar>?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?, Int
        ) -> Int32

    /// jemalloc's `mallctl`; nil where something else serves the memory.
    private static let control: Control? = {
        // jemalloc's own function, which has this signature in all of its versions.
        dlsym(nil, "mallctl").map { unsafeBitCast($0, to: Control.self) }
    }()
}
