import Platform

/// Damage that was met, waiting for who salvages. Does not name the database by a reference: a store may not keep it, and a
/// weak one would make every count of references to the database slow.
struct DamageReport {
    /// nil where it could not be opened.
    let store: EpochStore?
    let databaseName: String
    let error: LarderError
}

/// Damage that was met, waiting for the maintenance thread.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the list is read and written with the lock held.
final class DamageReports: @unchecked Sendable {
    private let lock = Lock()
    private var reports: [DamageReport] = []

    func add(_ store: EpochStore, _ error: LarderError) {
        lock.withLock {
            reports.append(DamageReport(store: store, databaseName: store.databaseName, error: error))
        }
    }

    /// Takes damage that keeps a database from being opened. Once, however often it is met.
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
