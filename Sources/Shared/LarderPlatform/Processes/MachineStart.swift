/// Identifies the current boot of the machine. As long as the machine has not restarted, writes of earlier processes
/// are not lost even if they were not synced.
package enum MachineStart {
    /// A different text for each boot; nil if the system does not report one.
    package static let identifier: String? = {
        #if canImport(Darwin)
            var bytes = [UInt8](repeating: 0, count: 128)
            var count = bytes.count
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
            let text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            return text.isEmpty ? nil : text
        #else
            guard let bytes = (try? FileSystem.read("/proc/sys/kernel/random/boot_id")) ?? nil else { return nil }
            let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
            return text.isEmpty ? nil : text
        #endif
    }()
}
