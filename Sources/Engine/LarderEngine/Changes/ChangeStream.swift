import LarderPlatform
import Synchronization

/// A subscriber to changes. Any thread may call it, possibly with locks of the database held: it must return quickly,
/// must not block, and must not call the engine.
package protocol ChangeSubscriber: AnyObject, Sendable {
    /// - Parameter changes: changes of single entries, or one change of a whole database. Never empty.
    func take(_ changes: [EntryChange])
}

/// The stream of a larder's changes.
///
/// - **Content**: the keys of changed entries, and what happened to them, without values. Entries that are only evicted
///   from memory are not changed. Changes of a whole database are one change.
/// - **Order**: the order of the commits, before the writers get their results. A reader that gets a change reads the
///   state after the change, or a newer one.
/// - **Gap**: the stream itself has none. A subscriber that cannot keep up drops changes and reports a gap to its own
///   readers: any entry may have changed.
///
/// A subscriber gets every change that is applied after it subscribed, and possibly changes in progress at that time.
/// Without subscribers, the only cost for a write is one relaxed atomic load.
///
/// Thread-safe.
package final class ChangeStream: Sendable {
    private struct Subscription {
        weak var subscriber: (any ChangeSubscriber)?
        let wantsUnseen: Bool
    }

    private let isTurnedOn = Atomic<Bool>(false)
    private let subscriptions = Locked<[Subscription]>([])

    init() {}

    /// Whether there are subscribers.
    package var isOn: Bool { isTurnedOn.load(ordering: .relaxed) }

    /// Adds a subscriber, or changes its filter. Keeps only a weak reference to it.
    /// - Parameter wantsUnseen: whether it also gets changes that make no difference to readers.
    package func subscribe(_ subscriber: any ChangeSubscriber, wantsUnseen: Bool = false) {
        set(subscriber, Subscription(subscriber: subscriber, wantsUnseen: wantsUnseen))
    }

    /// Removes a subscriber. Idempotent.
    package func unsubscribe(_ subscriber: any ChangeSubscriber) { set(subscriber, nil) }

    private func set(_ subscriber: any ChangeSubscriber, _ subscription: Subscription?) {
        subscriptions.withLock { subscriptions in
            subscriptions.removeAll { $0.subscriber == nil || $0.subscriber === subscriber }
            if let subscription { subscriptions.append(subscription) }
            isTurnedOn.store(!subscriptions.isEmpty, ordering: .sequentiallyConsistent)
        }
    }

    /// Passes changes of single entries to the subscribers.
    func publish(_ changes: [EntryChange]) {
        guard isOn, !changes.isEmpty else { return }
        let seen = changes.contains(where: \.isUnseen) ? changes.filter { !$0.isUnseen } : changes
        // No lock is held during the calls.
        for subscription in subscriptions.withLock({ $0 }) {
            let wanted = subscription.wantsUnseen ? changes : seen
            if !wanted.isEmpty { subscription.subscriber?.take(wanted) }
        }
    }

    /// Passes a change of a whole database to the subscribers.
    func publish(_ kind: EntryChange.Kind, of database: any DatabaseIdentity) {
        if isOn { publish([EntryChange(database: database, kind: kind)]) }
    }

    /// Publishes that entries may be older than their values at the database's origin.
    /// - Parameter keys: the keys of the entries; nil for all entries.
    package func publishOutdated(_ keys: [[UInt8]]?, of database: any DatabaseIdentity) {
        guard let keys else { return publish(.allOutdated, of: database) }
        if isOn { publish(keys.map { EntryChange(database: database, key: $0, kind: .outdated) }) }
    }
}
