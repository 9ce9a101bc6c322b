import LarderPlatform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The memory that a decoded model takes besides its own inline form: an upper bound where possible, or nothing.
///
/// Larder's JSON decoder counts what it makes. Models of other decoders are traversed, and not measured if that would
/// take too long. A type's own initializer may make more than the decoder counts: therefore some models of each type
/// are traversed, and all models of a type after one was much larger than counted.
package struct ModelSize {
    /// The bytes; nil if there are more than ``most``, or if they cannot be determined.
    package private(set) var bytes: Int?
    /// The largest size of interest.
    package let most: Int

    package init(most: Int) { self.most = most }

    /// Records the memory that a decoder has counted for a model.
    mutating func note<Model>(counted: Int, of model: Model) {
        bytes = counted <= most ? counted : nil
        let looks = SwollenTypes.shared.look(at: Model.self)
        guard looks != .none else { return }
        // Objects that an initializer refers to may be shared with other code.
        var walk = ModelWalk(most: most, followsObjects: false)
        walk.visit(model)
        let isSwollen = walk.bytes > 2 * counted + 4_096
        if isSwollen { SwollenTypes.shared.note(Model.self) }
        // If the traversal ended at its limit, the count is the better estimate, unless the counts of this type are
        // known to be wrong.
        if isSwollen || looks == .always {
            bytes = walk.isOver ? nil : max(walk.bytes, counted)
        }
    }

    /// Traverses a model.
    mutating func measure<Model>(_ model: Model) {
        var walk = ModelWalk(most: most, followsObjects: true)
        walk.visit(model)
        bytes = walk.isOver ? nil : walk.bytes
    }
}

/// The types whose models take more than their decoder can count.
///
/// Thread-safe. `@unchecked Sendable`: `counts` is guarded by `lock`.
private final class SwollenTypes: @unchecked Sendable {
    enum Looks { case none, once, always }

    static let shared = SwollenTypes()

    /// The first models of a type are all traversed, then one in ``oneIn``.
    private static let firstModels = 4
    private static let oneIn = 16

    /// The number of models of each type so far; nil for a type of which all are traversed.
    private var counts: [ObjectIdentifier: Int?] = [:]
    // Not a Mutex, because ThreadSanitizer does not understand it.
    private let lock = Lock()

    func look(at type: Any.Type) -> Looks {
        lock.withLock {
            guard let count = counts[ObjectIdentifier(type), default: 0] else { return .always }
            counts[ObjectIdentifier(type)] = .some(count &+ 1)
            return count < Self.firstModels || count % Self.oneIn == 0 ? .once : .none
        }
    }

    func note(_ type: Any.Type) { lock.withLock { counts[ObjectIdentifier(type)] = .some(nil) } }
}

/// Traverses a model and adds up the memory outside of its inline form: texts, collections, objects, payloads of
/// indirect cases. Objects are counted once.
private struct ModelWalk {
    private(set) var bytes = 0
    private let most: Int
    private let followsObjects: Bool
    private var visits = 0
    private var objects: Set<ObjectIdentifier> = []
    private var depth = 0

    /// The maximum number of values to visit, which takes some tenths of a millisecond.
    private static let visitsMax = 2_000
    private static let depthMax = 64
    /// The allocator's overhead for an allocation, and the header of an object.
    static let objectBytes = 48

    init(most: Int, followsObjects: Bool) {
        self.most = most
        self.followsObjects = followsObjects
    }

    /// Whether to stop: the model is too large, or the traversal takes too long.
    var isOver: Bool { bytes > most || visits > Self.visitsMax || depth > Self.depthMax }

    mutating func add(_ count: Int) { bytes += max(0, min(count, 1 << 48)) }

    mutating func visit(_ value: Any) {
        visits += 1
        depth += 1
        defer { if !isOver { depth -= 1 } }
        if isOver { return }
        switch value {
        case let text as String: addText(text.utf8.count)
        case let data as Data: add(data.count > 14 ? 2 * data.count + 4 * Self.objectBytes : 0)
        case let url as URL: add(3 * url.absoluteString.utf8.count + 1_024)
        case let collection as any Walkable: collection.walk(&self)
        default: visitParts(of: value)
        }
    }

    mutating func addText(_ count: Int) { if count > 15 { add(2 * count + Self.objectBytes) } }

    private mutating func visitParts(of value: Any) {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .class {
            guard followsObjects, objects.insert(ObjectIdentifier(value as AnyObject)).inserted else { return }
            add(Self.objectBytes)
        }
        // The contents of an object or an indirect case are not part of the inline form.
        let isOutside = mirror.displayStyle == .class || mirror.displayStyle == .enum
        var around: Mirror? = mirror
        while let level = around, !isOver {
            for child in level.children where !isOver {
                if isOutside { add(Self.stride(child.value) + Self.objectBytes) }
                visit(child.value)
            }
            around = level.superclassMirror
        }
    }

    private static func stride(_ value: Any) -> Int {
        func stride<Value>(_ value: Value) -> Int { MemoryLayout<Value>.stride }
        return _openExistential(value, do: stride)
    }
}

/// A collection of the standard library, which knows its size.
private protocol Walkable {
    func walk(_ walk: inout ModelWalk)
}

extension ModelWalk {
    mutating func elements<Elements: Sequence>(_ elements: Elements, capacity: Int, stride: Int) {
        guard capacity > 0 else { return }
        add(Self.objectBytes + capacity * stride)
        // Plain bytes hold nothing else.
        if _isPOD(Elements.Element.self) { return }
        for element in elements {
            if isOver { return }
            visit(element)
        }
    }
}

extension Array: Walkable {
    fileprivate func walk(_ walk: inout ModelWalk) {
        walk.elements(self, capacity: capacity, stride: MemoryLayout<Element>.stride)
    }
}

extension ArraySlice: Walkable {
    fileprivate func walk(_ walk: inout ModelWalk) {
        walk.elements(self, capacity: Swift.max(capacity, endIndex), stride: MemoryLayout<Element>.stride)
    }
}

extension ContiguousArray: Walkable {
    fileprivate func walk(_ walk: inout ModelWalk) {
        walk.elements(self, capacity: capacity, stride: MemoryLayout<Element>.stride)
    }
}

extension Set: Walkable {
    fileprivate func walk(_ walk: inout ModelWalk) {
        // The table has up to a third more slots than elements.
        walk.elements(self, capacity: capacity * 3 / 2 + 1, stride: MemoryLayout<Element>.stride)
    }
}

extension Dictionary: Walkable {
    fileprivate func walk(_ walk: inout ModelWalk) {
        let stride = MemoryLayout<Key>.stride + MemoryLayout<Value>.stride
        walk.elements(self, capacity: capacity * 3 / 2 + 1, stride: stride)
    }
}
