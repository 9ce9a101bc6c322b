/// Which start of the machine this is. What a process wrote without a sync is there for the next process as long as this is
/// the same.
package enum MachineStart {
    /// Another text for each start of the machine; nil where the system does not tell.
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
