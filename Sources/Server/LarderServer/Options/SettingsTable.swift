import LarderEngine

/// All settings. To add one, add a row here, or to the row of its larderd option if it has one.
enum SettingsTable {
    static func find(_ name: String) -> Setting? { byName[name.lowercased()] }

    private static let byName: [String: Setting] = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// The settings with an option, and the others.
    static let all: [Setting] = DaemonOption.all.flatMap(\.settings) + others

    private static let others: [Setting] = [
        Setting("maxmemory-policy", .onlyToItself) { _ in "noeviction" },
        Setting("maxmemory-samples", .onlyToItself) { _ in "5" },
        Setting("databases") { _ in "16" },
        .yesNo("appendonly", true),
        Setting("save", .onlyToItself) { _ in "" },
        Setting("dbfilename", .protected) { _ in "" },
        Setting("port") { _ in "0" },
        Setting("bind") { _ in "" },
        Setting("tcp-keepalive", .onlyToItself) { _ in "0" },
        Setting("proto-max-bulk-len", .onlyToItself) { String($0.limits.requests.bulkBytesMax) },
        Setting("client-query-buffer-limit", .onlyToItself) { String($0.limits.requests.requestBytesMax) },
        Setting("hash-max-listpack-entries", .onlyToItself) { _ in "512" },
        Setting("hz", .onlyToItself) { _ in "10" },
        Setting("cluster-enabled") { _ in "no" },
        Setting("larder-version") { _ in Version.text },
    ]
}
