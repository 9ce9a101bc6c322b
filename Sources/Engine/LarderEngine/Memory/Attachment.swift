import LarderPlatform
import Synchronization

/// An object that a user of the engine attaches to an entry in memory, such as its decoded value. Created as an
/// ``Attached``.
///
/// Immutable for its creator. The `var` properties belong to the table or the queue that contains the attachment. They
/// are accessed only with the lock of the table's shard held, or by the thread that took the attachment from the queue.
package class Attachment {
    /// The approximate size in bytes, specified by the creator. Counts towards the memory budget.
    package let byteCount: Int
    private let type: ObjectIdentifier
    /// The object that identifies how the value was made. Retained, so that no other object can get the same address.
    private let maker: AnyObject?
    /// A pointer to the value, which has the type ``type``.
    private let value: UnsafeRawPointer
    /// The entry that the attachment belongs to; nil after the entry has dropped it.
    @exclusivity(unchecked) fileprivate(set) var entry: EntryPointer?
    /// Whether the attachment was used since the last eviction round.
    @exclusivity(unchecked) fileprivate var wasRead = false
    @exclusivity(unchecked) fileprivate var newer: Unmanaged<Attachment>?
    @exclusivity(unchecked) fileprivate var older: Unmanaged<Attachment>?

    fileprivate init(_ type: Any.Type, _ value: UnsafeRawPointer, _ maker: AnyObject?, byteCount: Int) {
        self.byteCount = max(0, byteCount)
        self.type = ObjectIdentifier(type)
        self.value = value
        self.maker = maker
    }

    /// Returns the address of the value if it has exactly this type and this maker, otherwise nil. The address is valid
    /// while the attachment exists. Faster than a cast to the generic subclass, which looks up type metadata.
    package final func value(of type: ObjectIdentifier, madeBy maker: AnyObject?) -> UnsafeRawPointer? {
        self.type == type && self.maker === maker ? value : nil
    }

    /// Marks the attachment as used. Writes nothing if it is already marked.
    package final func touch() { if !wasRead { wasRead = true } }
}

/// Owns the value of an ``Attachment``.
package final class Attached<Value>: Attachment {
    private let place: UnsafeMutablePointer<Value>

    /// - Parameters:
    ///   - maker: distinguishes values of one type that were made in different ways.
    ///   - outerBytes: the number of bytes that the value uses in separate allocations, such as the contents of arrays.
    package init(_ value: Value, madeBy maker: AnyObject?, outerBytes: Int) {
        place = .allocate(capacity: 1)
        place.initialize(to: value)
        super.init(
            Value.self, UnsafeRawPointer(place), maker,
            byteCount: Self.ownBytes + MemoryLayout<Value>.stride + outerBytes)
    }

    /// The size of the object itself, plus the allocator's overhead for the object and for the value, in bytes.
    private static var ownBytes: Int { 160 }

    deinit {
        place.deinitialize(count: 1)
        place.deallocate()
    }
}

/// The attachments of one table, as a linked list from the newest to the oldest. The lock of the table's shard guards
/// it.
struct AttachmentList {
    private var newest: Unmanaged<Attachment>?
    private var oldest: Unmanaged<Attachment>?
    private(set) var byteCount = 0

    /// Attaches an object to an entry, which must have room for it and no attachment. The list retains the object.
    mutating func add(_ attachment: Attachment, to entry: EntryPointer) {
        attachment.entry = entry
        entry.attachment = push(Unmanaged.passRetained(attachment))
        byteCount += attachment.byteCount
    }

    /// Records that an entry was moved to other memory, with its attachment.
    func moved(_ entry: EntryPointer) { entry.attachment?._withUnsafeGuaranteedRef { $0.entry = entry } }

    private mutating func push(_ attachment: Unmanaged<Attachment>) -> Unmanaged<Attachment> {
        attachment._withUnsafeGuaranteedRef {
            $0.newer = nil
            $0.older = newest
        }
        if let newest { newest._withUnsafeGuaranteedRef { $0.newer = attachment } } else { oldest = attachment }
        newest = attachment
        return attachment
    }

    private mutating func unlink(_ attachment: Unmanaged<Attachment>) {
        attachment._withUnsafeGuaranteedRef { gone in
            if let newer = gone.newer {
                newer._withUnsafeGuaranteedRef { $0.older = gone.older }
            } else {
                newest = gone.older
            }
            if let older = gone.older {
                older._withUnsafeGuaranteedRef { $0.newer = gone.newer }
            } else {
                oldest = gone.newer
            }
        }
    }

    /// Detaches an entry's attachment.
    /// - Returns: the reference that the list owned; nil if there was none.
    mutating func take(from entry: EntryPointer) -> Unmanaged<Attachment>? {
        guard let attachment = entry.attachment else { return nil }
        entry.attachment = nil
        unlink(attachment)
        attachment._withUnsafeGuaranteedRef {
            $0.entry = nil
            byteCount -= $0.byteCount
        }
        return attachment
    }

    /// Returns the entry whose attachment should be dropped next: the oldest attachment that was not used since the
    /// last eviction round (CLOCK algorithm). nil if there are no attachments.
    mutating func nextToLeave() -> EntryPointer? {
        while let candidate = oldest {
            let entry = candidate._withUnsafeGuaranteedRef { attachment -> EntryPointer? in
                guard attachment.wasRead else { return attachment.entry }
                attachment.wasRead = false
                return nil
            }
            if let entry { return entry }
            unlink(candidate)
            _ = push(candidate)
        }
        return nil
    }
}

/// Attachments that entries have dropped, until a thread releases them. The releasing thread must hold no lock: the
/// deinitializers of attached values are code of the engine's user, and may call the engine.
///
/// Thread-safe. A linked list that uses the attachments' own links. Adding an attachment takes one atomic exchange, and
/// so does taking the whole list.
final class ReleaseQueue: Sendable {
    /// The address of the newest attachment, which the queue retains; 0 if the queue is empty.
    private let newest = Atomic<UInt>(0)
    private let bytes = Atomic<Int>(0)
    private let isReleasing = Atomic<Bool>(false)

    deinit { releaseAll() }

    /// The size of the attachments that have not been released yet, in bytes.
    var byteCount: Int { bytes.load(ordering: .relaxed) }

    /// Adds an attachment, and takes over the caller's reference. Called with locks held.
    func add(_ attachment: Unmanaged<Attachment>) {
        let address = UInt(bitPattern: attachment.toOpaque())
        bytes.add(attachment._withUnsafeGuaranteedRef { $0.byteCount }, ordering: .relaxed)
        var before = newest.load(ordering: .relaxed)
        while true {
            attachment._withUnsafeGuaranteedRef { $0.older = Self.attachment(before) }
            let (exchanged, original) = newest.compareExchange(
                expected: before, desired: address, successOrdering: .releasing, failureOrdering: .relaxed)
            if exchanged { return }
            before = original
        }
    }

    /// Releases all attachments. Called with no lock held, by a thread that may run the attachments' deinitializers.
    /// While one thread releases attachments, it also releases those that are added. Calls by other threads or by a
    /// deinitializer then return immediately.
    func release() {
        while newest.load(ordering: .relaxed) != 0 {
            guard isReleasing.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged else {
                return
            }
            releaseAll()
            isReleasing.store(false, ordering: .releasing)
        }
    }

    private func releaseAll() {
        var next = Self.attachment(newest.exchange(0, ordering: .acquiring))
        while let attachment = next {
            let byteCount = attachment._withUnsafeGuaranteedRef { attachment in
                next = attachment.older
                attachment.older = nil
                return attachment.byteCount
            }
            attachment.release()
            bytes.subtract(byteCount, ordering: .relaxed)
        }
    }

    private static func attachment(_ address: UInt) -> Unmanaged<Attachment>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged.fromOpaque($0) }
    }
}
