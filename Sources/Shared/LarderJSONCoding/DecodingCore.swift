/// The data of ``DecodingState``, and all its functions that call no model.
struct DecodingCore {
    /// How a nested container was reached.
    struct NestedPlace {
        /// The place of the container from which it was requested.
        var around: Place
        var step: PathStep
    }

    private var text = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var index = DocumentIndex()
    private var steps: UnsafeMutablePointer<PathStep?>
    private var stepCapacity = 16
    /// The number of steps in use; further ones are nil.
    private var stepsUsed = 0
    /// The nested containers of the model that is being read, and of the models around it. Index 0 means none.
    private(set) var nested: [NestedPlace] = []
    /// Keys and values of objects that cannot be searched in the text: see ``DocumentIndex/Keys``.
    private var dictionaries: [Int: [String: Int]] = [:]
    /// The number of long searches in objects with many fields.
    private var longSearches: [Int: UInt32] = [:]
    /// The number of comparisons between keys and requested names, without the first of each search.
    private(set) var comparisonCount = 0
    /// The bytes allocated for the model so far, besides its own inline form: see ``Made``.
    private(set) var madeBytes = 0

    /// Counts allocated bytes.
    @inline(__always) mutating func note(made bytes: Int) { madeBytes &+= bytes }

    /// Counts a field of an object that is about to be read.
    @inline(__always) mutating func note(field bytes: Int, of object: Int) {
        madeBytes &+= node(object).isCollection ? Made.growth &* bytes : bytes
    }

    init() {
        steps = .allocate(capacity: stepCapacity)
        steps.initialize(repeating: nil, count: stepCapacity)
    }

    func free() {
        index.free()
        steps.deinitialize(count: stepCapacity)
        steps.deallocate()
    }

    mutating func open(_ text: UnsafeRawBufferPointer) -> Bool {
        self.text = text
        comparisonCount = 0
        madeBytes = 0
        return index.build(text)
    }

    mutating func close() {
        text = UnsafeRawBufferPointer(start: nil, count: 0)
        index.reset()
        for place in 0..<stepsUsed { steps[place] = nil }
        stepsUsed = 0
        if !nested.isEmpty { nested.removeAll(keepingCapacity: nested.count < 64) }
        if !dictionaries.isEmpty { dictionaries = [:] }
        if !longSearches.isEmpty { longSearches = [:] }
    }

    // MARK: Nodes

    /// A node; a null node if the document is closed.
    @inline(__always) func node(_ node: Int) -> DocumentIndex.Node {
        node < index.count ? index.nodes[node] : DocumentIndex.Node()
    }

    /// The bytes of a string or a number in the text.
    @inline(__always) func bytes(_ node: DocumentIndex.Node) -> UnsafeBufferPointer<UInt8> {
        // The index has only positions within the text.
        let base = text.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
        return UnsafeBufferPointer(start: base + Int(node.start), count: Int(node.end &- node.start))
    }

    func string(_ node: Int) -> String {
        let found = self.node(node)
        return found.hasEscapes ? StringText.unescaped(bytes(found)) : StringText.plain(bytes(found))
    }

    // MARK: Fields

    /// Makes an object ready for ``field(_:of:)``.
    mutating func prepare(_ object: Int) {
        guard node(object).kind == .object, index.nodes[object].keys == .unknown else { return }
        if keysAreDistinct(object) {
            index.nodes[object].keys = .distinct
        } else {
            makeDictionary(object)
        }
    }

    /// Whether the keys are plain and distinct. Few keys are compared; many are left to a dictionary.
    private func keysAreDistinct(_ object: Int) -> Bool {
        guard index.nodes[object].end <= 64 else { return manyKeysAreDistinct(object) }
        let end = Int(index.nodes[object].next)
        var filter: UInt64 = 0
        var key = object &+ 1
        while key < end {
            let found = index.nodes[key]
            guard found.isPlain, !found.hasEscapes else { return false }
            let bytes = bytes(found)
            var hash = UInt64(truncatingIfNeeded: bytes.count)
            if bytes.count > 0 {
                hash = hash &* 31 &+ UInt64(bytes[0])
                hash = hash &* 31 &+ UInt64(bytes[bytes.count &- 1])
                hash = hash &* 31 &+ UInt64(bytes[bytes.count / 2])
            }
            let bit: UInt64 = 1 << ((hash &* 0x9E37_79B9_7F4A_7C15) >> 58)
            if filter & bit != 0, isThere(bytes, from: object &+ 1, to: key) { return false }
            filter |= bit
            key = Int(index.nodes[key &+ 1].next)
        }
        return true
    }

    private func manyKeysAreDistinct(_ object: Int) -> Bool {
        var seen: Set<UInt64> = []
        let end = Int(index.nodes[object].next)
        var key = object &+ 1
        while key < end {
            let found = index.nodes[key]
            guard found.isPlain, !found.hasEscapes else { return false }
            var hasher = Hasher()
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes(found)))
            // Keys with equal hashes count as equal here: the dictionary then decides.
            guard seen.insert(UInt64(bitPattern: Int64(hasher.finalize()))).inserted else { return false }
            key = Int(index.nodes[key &+ 1].next)
        }
        return true
    }

    private func isThere(_ name: UnsafeBufferPointer<UInt8>, from first: Int, to end: Int) -> Bool {
        var key = first
        while key < end {
            if Self.areEqual(bytes(index.nodes[key]), name) { return true }
            key = Int(index.nodes[key &+ 1].next)
        }
        return false
    }

    /// If several fields have one name, the first one is used. Names are equal as Swift's strings are.
    private mutating func makeDictionary(_ object: Int) {
        var fields: [String: Int] = [:]
        let end = Int(index.nodes[object].next)
        var key = object + 1
        while key < end {
            let name = string(key)
            if fields[name] == nil { fields[name] = key + 1 }
            key = Int(index.nodes[key + 1].next)
        }
        dictionaries[object] = fields
        longSearches[object] = nil
        index.nodes[object].keys = .indexed
    }

    /// The value of an object's field; nil when there is none. Fields requested in the order of the text are found at
    /// once. For many fields in another order it builds a dictionary, so the time of all searches grows with the sum of
    /// text and searches, not with their product.
    mutating func field(_ name: String, of object: Int) -> Int? {
        let found = node(object)
        guard found.kind == .object, found.end > 0 else { return nil }
        if found.keys == .indexed { return dictionaries[object]?[name] }
        var name = name
        let field = name.withUTF8 { scan($0, object, found) }
        if let field { return field > 0 ? field : nil }
        makeDictionary(object)
        return dictionaries[object]?[name]
    }

    /// The number of fields to search before a search of a larger object gives up.
    private static let searchedFieldsMax: UInt32 = 32
    /// The number of long searches of one object after which a dictionary is built.
    private static let longSearchesMax: UInt32 = 2
    /// The number of steps that make a search a long one.
    private static let longSearchSteps = 8

    /// - Returns: the value's node; 0 when there is none; nil when a dictionary must decide.
    @inline(__always) private mutating func scan(
        _ name: UnsafeBufferPointer<UInt8>, _ object: Int, _ found: DocumentIndex.Node
    ) -> Int? {
        let nodes = index.nodes
        let first = Int(found.start)
        let next = Int(nodes[first &+ 1].next)
        let after = next == Int(found.next) ? object &+ 1 : next
        if Self.areEqual(bytes(nodes[first]), name) {
            nodes[object].start = UInt32(truncatingIfNeeded: after)
            return first &+ 1
        }
        return search(name, object, found, from: after)
    }

    /// ``scan(_:_:_:)`` after the first key.
    @inline(never) private mutating func search(
        _ name: UnsafeBufferPointer<UInt8>, _ object: Int, _ found: DocumentIndex.Node, from start: Int
    ) -> Int? {
        let nodes = index.nodes
        let end = Int(found.next)
        let first = Int(found.start)
        var key = start
        var steps = 0
        defer { comparisonCount &+= steps }
        while key != first {
            let next = Int(nodes[key &+ 1].next)
            let after = next == end ? object &+ 1 : next
            steps &+= 1
            if Self.areEqual(bytes(nodes[key]), name) {
                nodes[object].start = UInt32(truncatingIfNeeded: after)
                if steps > Self.longSearchSteps { noteLongSearch(object, found) }
                return key &+ 1
            }
            key = after
        }
        if steps > Self.longSearchSteps { noteLongSearch(object, found) }
        // A name that is not ASCII may still equal an ASCII key: the Kelvin sign (U+212A) equals "K".
        return name.allSatisfy { $0 < 0x80 } ? 0 : nil
    }

    /// Keeps an object with many fields from being searched from end to end again and again.
    private mutating func noteLongSearch(_ object: Int, _ found: DocumentIndex.Node) {
        guard found.end > Self.searchedFieldsMax else { return }
        let searches = longSearches[object, default: 0] + 1
        longSearches[object] = searches
        if searches >= Self.longSearchesMax { makeDictionary(object) }
    }

    @inline(__always) private static func areEqual(_ a: UnsafeBufferPointer<UInt8>, _ b: UnsafeBufferPointer<UInt8>)
        -> Bool
    {
        guard a.count == b.count else { return false }
        var index = 0
        while index &+ 8 <= a.count {
            let left = UnsafeRawPointer(a.baseAddress.unsafelyUnwrapped + index).loadUnaligned(as: UInt64.self)
            let right = UnsafeRawPointer(b.baseAddress.unsafelyUnwrapped + index).loadUnaligned(as: UInt64.self)
            if left != right { return false }
            index &+= 8
        }
        while index < a.count {
            if a[index] != b[index] { return false }
            index &+= 1
        }
        return true
    }

    /// Like ``names(of:)``, for a model that creates a collection from the fields.
    mutating func namesToCollect(of object: Int) -> [String] {
        let names = names(of: object)
        if node(object).kind == .object { index.nodes[object].isCollection = true }
        for name in names { note(made: Made.growth &* Made.simpleBytes &+ Made.text(name.utf8.count)) }
        return names
    }

    /// The names of an object's fields in the order of the text, each once.
    func names(of object: Int) -> [String] {
        let found = node(object)
        guard found.kind == .object else { return [] }
        var names: [String] = []
        names.reserveCapacity(Int(found.end))
        var key = object + 1
        let end = Int(found.next)
        while key < end {
            let name = string(key)
            if found.keys != .indexed || dictionaries[object]?[name] == key + 1 { names.append(name) }
            key = Int(index.nodes[key + 1].next)
        }
        return names
    }

    // MARK: Paths

    /// Returns the place one step below, for a model that is about to be read there.
    @inline(__always) mutating func enter(_ place: Place, _ step: PathStep?) -> Place {
        guard let step, place.depth < .max else { return place }
        if place.nested != 0 { restore(place) }
        set(step, at: Int(place.depth))
        return Place(depth: place.depth &+ 1)
    }

    /// Returns the place of a nested container, one step below.
    mutating func enterNested(_ place: Place, _ step: PathStep) -> Place {
        var inner = enter(place, step)
        if nested.isEmpty { nested.append(NestedPlace(around: Place(depth: 0), step: step)) }
        // With more than 65,535 simultaneous containers, coding paths may be those of neighbouring containers.
        if nested.count <= Int(UInt16.max) {
            inner.nested = UInt16(nested.count)
            nested.append(NestedPlace(around: place, step: step))
        }
        return inner
    }

    /// Forgets the nested containers of a model that was read.
    @inline(__always) mutating func leave(_ count: Int) {
        if nested.count > count { nested.removeLast(nested.count - count) }
    }

    /// Makes `steps` lead to a nested container again.
    private mutating func restore(_ place: Place) {
        var place = place
        while place.nested != 0, Int(place.nested) < nested.count, place.depth > 0 {
            let reached = nested[Int(place.nested)]
            set(reached.step, at: Int(place.depth) - 1)
            place = reached.around
        }
    }

    private mutating func set(_ step: PathStep, at place: Int) {
        if place >= stepCapacity { growSteps() }
        steps[place] = step
        if place >= stepsUsed { stepsUsed = place &+ 1 }
    }

    private mutating func growSteps() {
        let moved = UnsafeMutablePointer<PathStep?>.allocate(capacity: stepCapacity * 2)
        moved.moveInitialize(from: steps, count: stepCapacity)
        (moved + stepCapacity).initialize(repeating: nil, count: stepCapacity)
        steps.deallocate()
        steps = moved
        stepCapacity *= 2
    }

    mutating func path(_ place: Place, _ step: PathStep? = nil) -> [any CodingKey] {
        restore(place)
        var path = (0..<min(Int(place.depth), stepsUsed)).compactMap { steps[$0]?.codingKey }
        if let step { path.append(step.codingKey) }
        return path
    }
}
