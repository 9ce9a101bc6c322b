import LarderPlatform
import Synchronization

/// Notifies the observers that are turned on about commits.
///
/// Without observers a write costs one relaxed load. An observer is notified of all changes that are applied after it
/// was turned on, and of some that were in progress at that time.
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

    /// Turns the notifications of an observer on or off. Keeps no strong reference to it. Idempotent.
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

    /// Runs `body` for each observer that is turned on, without the lock.
    func notifyEach(_ body: (any ChangeObserver) -> Void) {
        guard isOn else { return }
        for observer in lock.withLock({ listeners.compactMap(\.observer) }) { body(observer) }
    }
}
