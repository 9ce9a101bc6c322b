import LarderEngine

/// All settings of CONFIG. Add a new setting here, or, if it belongs to an option of larderd, to that option.
enum SettingsTable {
    static func find(_ name: String) -> Setting? { byName[name.lowercased()] }

    /// The key of the setting's option; for a setting without an option, the setting's name. Settings with the same key
    /// change the same value.
    static func key(_ setting: Setting) -> String {
        DaemonOption.all.first { $0.settings.contains { $0.name == setting.name } }?.key ?? setting.name
    }

    private static let byName: [String: Setting] = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// All settings: first those that belong to options, then the others.
    static let all: [Setting] = DaemonOption.all.flatMap(\.settings) + others

    private static let others: [Setting] = [
        Setting("maxmemory-policy", .currentValueOnly) { _ in "noeviction" },
        Setting("maxmemory-samples", .currentValueOnly) { _ in "5" },
        Setting("databases") { _ in "16" },
        .yesNo("appendonly", true),
        Setting("save", .currentValueOnly) { _ in "" },
        Setting("dbfilename", .protected) { _ in "" },
        Setting("port") { _ in "0" },
        Setting("bind") { _ in "" },
        Setting("tcp-keepalive", .currentValueOnly) { _ in "0" },
        Setting("proto-max-bulk-len", .currentValueOnly) { String($0.limits.requests.bulkBytesMax) },
        Setting("client-query-buffer-limit", .currentValueOnly) { String($0.limits.requests.requestBytesMax) },
        Setting("hash-max-listpack-entries", .currentValueOnly) { _ in "512" },
        Setting("hz", .currentValueOnly) { _ in "10" },
        Setting("cluster-enabled") { _ in "no" },
        Setting("larder-version") { _ in Version.text },
    ]
}
