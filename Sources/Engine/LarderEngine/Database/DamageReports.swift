import LarderPlatform

/// Damage that waits for its salvage. It names the database instead of referring to it: a store must not retain its
/// database, and a weak reference would slow down all reference counting of the database.
struct DamageReport {
    /// nil if the store could not be opened.
    let store: EpochStore?
    let databaseName: String
    let error: LarderError
}

/// Damage that waits for the maintenance thread.
///
/// Thread-safe. `@unchecked Sendable`: the list is guarded by `lock`.
final class DamageReports: @unchecked Sendable {
    private let lock = Lock()
    private var reports: [DamageReport] = []

    func add(_ store: EpochStore, _ error: LarderError) {
        lock.withLock {
            reports.append(DamageReport(store: store, databaseName: store.databaseName, error: error))
        }
    }

    /// Reports damage that keeps a database from being opened: once, however often it is detected.
    func add(_ name: String, _ error: LarderError) {
        lock.withLock {
            guard !reports.contains(where: { $0.store == nil && $0.databaseName == name }) else { return }
            reports.append(DamageReport(store: nil, databaseName: name, error: error))
        }
    }

    func take() -> [DamageReport] {
        lock.withLock {
            defer { reports = [] }
            return reports
        }
    }
}
