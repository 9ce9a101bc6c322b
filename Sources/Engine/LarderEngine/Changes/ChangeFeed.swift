import LarderPlatform
import Synchronization

/// The observers of a larder's commits. Each observer can be turned on and off.
///
/// While all observers are off, the only cost for a write is one relaxed atomic load. An observer is notified of every
/// change that is applied after the observer was turned on, and possibly of changes in progress at that time.
///
/// Thread-safe. `@unchecked Sendable`: the observers are guarded by `lock`.
package final class ChangeFeed: @unchecked Sendable {
    private struct Listener {
        weak var observer: (any ChangeObserver)?
    }

    private let isTurnedOn = Atomic<Bool>(false)
    private let lock = Lock()
    private var listeners: [Listener] = []

    init() {}

    /// Whether any observer is turned on.
    package var isOn: Bool { isTurnedOn.load(ordering: .relaxed) }

    /// Starts or stops notifying an observer. Keeps only a weak reference to it. Idempotent.
    package func turn(on: Bool, for observer: any ChangeObserver) {
        lock.withLock {
            listeners.removeAll { $0.observer == nil || $0.observer === observer }
            if on { listeners.append(Listener(observer: observer)) }
            isTurnedOn.store(!listeners.isEmpty, ordering: .sequentiallyConsistent)
        }
    }

    func notify(_ changes: [EntryChange]) {
        if changes.isEmpty { return }
        guard changes.contains(where: \.isUnseen) else { return notifyEach { $0.changed(changes) } }
        let seen = changes.filter { !$0.isUnseen }
        notifyEach { observer in
            if observer.wantsUnseen {
                observer.changed(changes)
            } else if !seen.isEmpty {
                observer.changed(seen)
            }
        }
    }

    /// Calls `body` for each observer that is on. `lock` is not held during the calls.
    func notifyEach(_ body: (any ChangeObserver) -> Void) {
        guard isOn else { return }
        for observer in lock.withLock({ listeners.compactMap(\.observer) }) { body(observer) }
    }
}
