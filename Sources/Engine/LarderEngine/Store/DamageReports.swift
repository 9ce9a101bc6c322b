import LarderPlatform

/// Damage that was detected and is not salvaged yet. It has the name of the database instead of a reference to it: a
/// store must not retain its database, and a weak reference would slow down all reference counting of the database.
struct DamageReport {
    /// The damaged LevelDB; nil if it could not be opened.
    let store: EpochStore?
    let databaseName: String
    let error: LarderError
}

/// The detected damage that the maintenance thread is to handle.
///
/// Thread-safe.
final class DamageReports: Sendable {
    private let reports = Locked<[DamageReport]>([])

    func add(_ store: EpochStore, _ error: LarderError) {
        reports.withLock { $0.append(DamageReport(store: store, databaseName: store.databaseName, error: error)) }
    }

    /// Adds the damage of a database that cannot be opened, unless the list has such damage already.
    func add(_ name: String, _ error: LarderError) {
        reports.withLock { reports in
            guard !reports.contains(where: { $0.store == nil && $0.databaseName == name }) else { return }
            reports.append(DamageReport(store: nil, databaseName: name, error: error))
        }
    }

    func take() -> [DamageReport] {
        reports.withLock { exchange(&$0, with: []) }
    }
}
