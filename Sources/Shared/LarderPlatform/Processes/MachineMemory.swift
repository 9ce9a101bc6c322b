#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#endif

/// The memory that this process may use: that of the machine, or of its container if that is less.
package enum MachineMemory {
    /// The number of bytes; 0 if the system does not report it.
    package static let bytes: Int = {
        let (pages, size) = (sysconf(CInt(_SC_PHYS_PAGES)), sysconf(CInt(_SC_PAGESIZE)))
        guard pages > 0, size > 0 else { return 0 }
        let (bytes, overflows) = Int(pages).multipliedReportingOverflow(by: Int(size))
        let limits = groupLimits { path in
            ((try? FileSystem.read(path)) ?? nil).map { String(decoding: $0, as: UTF8.self) }
        }
        return limits.reduce(overflows ? .max : bytes, min)
    }()

    /// The limits of the process's control group and of the groups above it: cgroups(7), both versions. In a container
    /// the path of the group may be that on the host, and the root of the mount is the group, so the root is read too.
    /// - Parameter read: returns the text of a file; nil if there is none.
    package static func groupLimits(_ read: (String) -> String?) -> [Int] {
        guard let groups = read("/proc/self/cgroup") else { return [] }
        return groups.split(separator: "\n").flatMap { line -> [Int] in
            // The number of the hierarchy, its controllers (none for version 2), and the path.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return [] }
            let isSecond = fields[1].isEmpty
            guard isSecond || fields[1].split(separator: ",").contains("memory") else { return [] }
            let mount = isSecond ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory"
            let file = isSecond ? "memory.max" : "memory.limit_in_bytes"
            let names = fields[2].split(separator: "/").map(String.init)
            return (0...names.count).compactMap { depth in
                let path = ([mount] + names.prefix(depth) + [file]).joined(separator: "/")
                // A group without a limit has the text "max".
                return read(path).flatMap { text in text.split(separator: "\n").first.flatMap { Int($0) } }
            }
        }
    }
}
