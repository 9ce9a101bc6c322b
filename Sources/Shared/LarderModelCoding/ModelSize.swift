import LarderPlatform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The memory, in bytes, that a decoded model uses in addition to its inline value, for example for strings and arrays:
/// an upper bound if possible, or nil.
///
/// Larder's JSON decoder counts the memory that it allocates. But a model's initializer may allocate more. Therefore
/// some models of each type are also traversed with reflection. If a model uses much more than counted, all later
/// models of its type are traversed. Models of other decoders are always traversed, unless that takes too long.
package struct ModelSize {
    /// The number of bytes; nil if it is larger than ``most`` or cannot be determined.
    package private(set) var bytes: Int?
    /// The largest size, in bytes, that the caller needs to know exactly.
    package let most: Int

    package init(most: Int) { self.most = most }

    /// Sets the size to the decoder's count, or to the size that a traversal has found if that is larger.
    mutating func note<Model>(counted: Int, of model: Model) {
        bytes = counted <= most ? counted : nil
        let traversal = UndercountedTypes.traversal(for: Model.self)
        guard traversal != .none else { return }
        // Do not follow objects: the decoder did not create them, so other code may use them too.
        var walk = ModelWalk(most: most, followsObjects: false)
        walk.visit(model)
        let isSwollen = walk.bytes > 2 * counted + 4_096
        if isSwollen { UndercountedTypes.note(Model.self) }
        // Prefer the decoder's count, unless it is known to be wrong for this type.
        if isSwollen || traversal == .always { bytes = walk.isOver ? nil : max(walk.bytes, counted) }
    }

    /// Sets the size by traversing a model.
    mutating func measure<Model>(_ model: Model) {
        var walk = ModelWalk(most: most, followsObjects: true)
        walk.visit(model)
        bytes = walk.isOver ? nil : walk.bytes
    }
}

/// The types whose models use much more memory than the decoder counts. Thread-safe.
private enum UndercountedTypes {
    enum Traversal { case none, once, always }

    /// The first four models of each type are traversed, and then one in 16.
    private static let firstModels = 4
    private static let oneIn = 16

    /// The number of models of each type so far; nil for a type whose models are all traversed.
    private static let counts = Locked<[ObjectIdentifier: Int?]>([:])

    static func traversal(for type: Any.Type) -> Traversal {
        counts.withLock { counts in
            guard let count = counts[ObjectIdentifier(type), default: 0] else { return .always }
            counts[ObjectIdentifier(type)] = .some(count &+ 1)
            return count < firstModels || count % oneIn == 0 ? .once : .none
        }
    }

    static func note(_ type: Any.Type) { counts.withLock { $0[ObjectIdentifier(type)] = .some(nil) } }
}

/// Traverses a model and adds up the memory that is not part of its inline value: strings, collections, objects, and
/// the values of indirect enum cases. Each object is counted once.
private struct ModelWalk {
    private(set) var bytes = 0
    private let most: Int
    private let followsObjects: Bool
    private var visits = 0
    private var objects: Set<ObjectIdentifier> = []
    private var depth = 0

    /// The maximum number of values to visit. Visiting so many takes some tenths of a millisecond.
    private static let visitsMax = 2_000
    private static let depthMax = 64
    /// The additional bytes of each allocation: the overhead of the allocator and the header of an object.
    static let objectBytes = 48

    init(most: Int, followsObjects: Bool) {
        self.most = most
        self.followsObjects = followsObjects
    }

    /// Whether the traversal has stopped, because the model is too large, too deep, or has too many values.
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
        // The contents of an object or an indirect enum case are not part of the inline value.
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

/// A collection of the standard library, whose allocated size can be computed.
private protocol Walkable {
    func walk(_ walk: inout ModelWalk)
}

extension ModelWalk {
    mutating func elements<Elements: Sequence>(_ elements: Elements, capacity: Int, stride: Int) {
        guard capacity > 0 else { return }
        add(Self.objectBytes + capacity * stride)
        // Elements of trivial types refer to no other memory.
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
        // The hash table may have up to 1.5 times as many slots as the capacity.
        walk.elements(self, capacity: capacity * 3 / 2 + 1, stride: MemoryLayout<Element>.stride)
    }
}

extension Dictionary: Walkable {
    fileprivate func walk(_ walk: inout ModelWalk) {
        let stride = MemoryLayout<Key>.stride + MemoryLayout<Value>.stride
        walk.elements(self, capacity: capacity * 3 / 2 + 1, stride: stride)
    }
}
