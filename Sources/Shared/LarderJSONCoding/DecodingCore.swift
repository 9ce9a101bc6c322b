/// The data of ``DecodingState``, with all functions that do not call a model's `init(from:)`.
struct DecodingCore {
    /// The path to a nested container: its parent and the last step.
    struct NestedPlace {
        /// The place of the parent container.
        var around: Place
        var step: PathStep
    }

    private var text = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var index = DocumentIndex()
    private var steps: UnsafeMutablePointer<PathStep?>
    private var stepCapacity = 16
    /// The number of steps that may be set; the others are nil.
    private var stepsUsed = 0
    /// The nested containers of the model being read, and of models that contain it. Index 0 is unused: it means none.
    private(set) var nested: [NestedPlace] = []
    /// For each object with ``DocumentIndex/Keys/indexed`` keys: the nodes of its values by key.
    private var dictionaries: [Int: [String: Int]] = [:]
    /// The number of long searches in each object with many fields.
    private var longSearches: [Int: UInt32] = [:]
    /// The number of key comparisons, not counting the first one of each search. Tests use it to check the cost.
    private(set) var comparisonCount = 0
    /// The bytes allocated for the model so far, in addition to its inline value: see ``Made``.
    private(set) var madeBytes = 0

    /// Adds allocated bytes to ``madeBytes``.
    @inline(__always) mutating func note(made bytes: Int) { madeBytes &+= bytes }

    /// Adds the size of a field's value to ``madeBytes``, ``Made/growth`` times if the model may fill a collection.
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

    /// Returns a node; a null node if the document is closed.
    @inline(__always) func node(_ node: Int) -> DocumentIndex.Node {
        node < index.count ? index.nodes[node] : DocumentIndex.Node()
    }

    /// Returns the bytes of a string or number in the text.
    @inline(__always) func bytes(_ node: DocumentIndex.Node) -> UnsafeBufferPointer<UInt8> {
        // Safe, because the index contains only positions within the text.
        let base = text.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
        return UnsafeBufferPointer(start: base + Int(node.start), count: Int(node.end &- node.start))
    }

    func string(_ node: Int) -> String {
        let found = self.node(node)
        return found.hasEscapes ? StringText.unescaped(bytes(found)) : StringText.plain(bytes(found))
    }

    // MARK: Fields

    /// Prepares an object for ``field(_:of:)``: makes a dictionary unless its keys can be compared in the text.
    mutating func prepare(_ object: Int) {
        guard node(object).kind == .object, index.nodes[object].keys == .unknown else { return }
        if keysAreDistinct(object) {
            index.nodes[object].keys = .distinct
        } else {
            makeDictionary(object)
        }
    }

    /// Whether all keys are distinct ASCII without escapes. For up to 64 keys, a filter avoids most comparisons.
    private func keysAreDistinct(_ object: Int) -> Bool {
        guard index.nodes[object].end <= 64 else { return manyKeysAreDistinct(object) }
        let end = Int(index.nodes[object].next)
        var filter: UInt64 = 0
        var key = object &+ 1
        while key < end {
            let found = index.nodes[key]
            guard found.isPlain, !found.hasEscapes else { return false }
            let bytes = bytes(found)
            let bit = bytes.filterBit
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
            // Treat keys with equal hashes as equal. The object then gets a dictionary, which compares them exactly.
            guard seen.insert(UInt64(bitPattern: Int64(hasher.finalize()))).inserted else { return false }
            key = Int(index.nodes[key &+ 1].next)
        }
        return true
    }

    private func isThere(_ name: UnsafeBufferPointer<UInt8>, from first: Int, to end: Int) -> Bool {
        var key = first
        while key < end {
            if bytes(index.nodes[key]).isEqual(to: name) { return true }
            key = Int(index.nodes[key &+ 1].next)
        }
        return false
    }

    /// Makes the dictionary of an object's fields. If several fields have the same name, the first one is used. Names
    /// are compared as Swift strings.
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

    /// Returns the node of a field's value; nil if there is no such field. Fields that are requested in the order of
    /// the text are found with one comparison. In an object with many fields, a dictionary is built after a few long
    /// searches. So the total time is proportional to fields plus requests, not to their product.
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

    /// Only objects with more fields than this get a dictionary because of long searches.
    private static let searchedFieldsMax: UInt32 = 32
    /// The number of long searches in an object after which a dictionary is built.
    private static let longSearchesMax: UInt32 = 2
    /// A search with more comparisons than this counts as long.
    private static let longSearchSteps = 8

    /// - Returns: the node of the value; 0 if there is no such field; nil if the
    ///   scan cannot tell, and a dictionary is needed.
    @inline(__always) private mutating func scan(
        _ name: UnsafeBufferPointer<UInt8>, _ object: Int, _ found: DocumentIndex.Node
    ) -> Int? {
        let nodes = index.nodes
        let first = Int(found.start)
        let next = Int(nodes[first &+ 1].next)
        let after = next == Int(found.next) ? object &+ 1 : next
        if bytes(nodes[first]).isEqual(to: name) {
            nodes[object].start = UInt32(truncatingIfNeeded: after)
            return first &+ 1
        }
        return search(name, object, found, from: after)
    }

    /// Continues ``scan(_:_:_:)`` after the first key.
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
            if bytes(nodes[key]).isEqual(to: name) {
                nodes[object].start = UInt32(truncatingIfNeeded: after)
                if steps > Self.longSearchSteps { noteLongSearch(object, found) }
                return key &+ 1
            }
            key = after
        }
        if steps > Self.longSearchSteps { noteLongSearch(object, found) }
        // In Swift, a name that is not ASCII may equal an ASCII key: the Kelvin sign (U+212A) equals "K". Only a
        // dictionary finds such a key.
        return name.allSatisfy { $0 < 0x80 } ? 0 : nil
    }

    /// Counts a long search in an object with many fields, and builds a dictionary after the second one.
    private mutating func noteLongSearch(_ object: Int, _ found: DocumentIndex.Node) {
        guard found.end > Self.searchedFieldsMax else { return }
        let searches = longSearches[object, default: 0] + 1
        longSearches[object] = searches
        if searches >= Self.longSearchesMax { makeDictionary(object) }
    }

    /// Like ``names(of:)``, for a model that asks for all names, probably to store the fields in a collection.
    mutating func namesToCollect(of object: Int) -> [String] {
        let names = names(of: object)
        if node(object).kind == .object { index.nodes[object].isCollection = true }
        for name in names { note(made: Made.growth &* Made.simpleBytes &+ Made.text(name.utf8.count)) }
        return names
    }

    /// Returns the names of an object's fields in the order of the text, without duplicates.
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

    /// Returns the place of a model that is about to be read: one step below `place`.
    @inline(__always) mutating func enter(_ place: Place, _ step: PathStep?) -> Place {
        guard let step, place.depth < .max else { return place }
        if place.nested != 0 { restore(place) }
        set(step, at: Int(place.depth))
        return Place(depth: place.depth &+ 1)
    }

    /// Returns the place of a nested container: one step below `place`.
    mutating func enterNested(_ place: Place, _ step: PathStep) -> Place {
        var inner = enter(place, step)
        if nested.isEmpty { nested.append(NestedPlace(around: Place(depth: 0), step: step)) }
        // More than 65,535 nested containers cannot be numbered. Coding paths in errors may then be wrong.
        if nested.count <= Int(UInt16.max) {
            inner.nested = UInt16(nested.count)
            nested.append(NestedPlace(around: place, step: step))
        }
        return inner
    }

    /// Removes the nested containers of a model after it was read.
    @inline(__always) mutating func leave(_ count: Int) {
        if nested.count > count { nested.removeLast(nested.count - count) }
    }

    /// Sets `steps` to the path of a nested container, because reading other containers may have changed `steps`.
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
