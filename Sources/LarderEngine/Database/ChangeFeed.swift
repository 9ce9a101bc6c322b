import Platform
import Synchronization

/// Tells an observer about commits while that observer wants to know.
///
/// While it is off, a write costs one relaxed load more. It reports everything applied after it was turned on, and some
/// of what was already under way.
/// way meanwhile, a part.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the observer is read and written with the lock held.
package final class ChangeFeed: @unchecked Sendable {
    private let isTurnedOn = Atomic<Bool>(false)
    private let lock = Lock()
    private weak var observer: (any ChangeObserver)?

    init() {}

    /// Whether changes are to be noted.
    package var isOn: Bool { isTurnedOn.load(ordering: .relaxed) }

    package func observe(_ observer: any ChangeObserver) { lock.withLock { self.observer = observer } }

    package func turn(on: Bool) { isTurnedOn.store(on, ordering: .sequentiallyConsistent) }

    func tell(_ changes: [EntryChange]) {
        if !changes.isEmpty { current?.changed(changes) }
    }

    /// The observer if the feed is on.
    var current: (any ChangeObserver)? { isOn ? lock.withLock { observer } : nil }
}
