package enum JSONKind: UInt8, Sendable {
    case null, no, yes, number, string, object, array

    /// The kind in texts of errors.
    var name: String {
        switch self {
        case .null: "null"
        case .no, .yes: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .object: "an object"
        case .array: "an array"
        }
    }
}

/// The positions of all values and keys in a JSON text: one node for each, in the order of the text.
///
/// ```
/// {"a":[1,"x"],"b":null}
///
/// node  0       1        2     3       4        5          6     7
///       (null)  object   "a"   array   number   string     "b"   null
///       spare   count 2        count 2 1        x
///       next 1  next 8   n. 3  next 6  next 5   next 6     n. 7  next 8
/// ```
///
/// Node 0 is a null, used for absent values. Node 1 is the whole document. An object's node is followed by the nodes of
/// its first key, that key's value, the second key, and so on. `next` is the number of the first node after a value and
/// its content; for an object's field, this is the next key.
///
/// ``build(_:)`` accepts only UTF-8 and JSON as in RFC 8259, up to 512 levels and 1 GiB. So code that reads the nodes
/// can rely on well-formed strings and numbers.
///
/// For one thread at a time. Never reads beyond the text: words of eight bytes are read only if eight bytes are left.
struct DocumentIndex {
    struct Node {
        typealias Kind = JSONKind

        /// The offset of the first byte in the text, without the quote. For an object or array, only if the index
        /// ``locates`` them; otherwise, for an object, the node of the key at which the next search begins.
        var start: UInt32 = 0
        /// The offset after the last byte, without the quote. For an object or array, only if the index ``locates``
        /// them; otherwise the number of fields or elements.
        var end: UInt32 = 0
        var next: UInt32 = 0
        var kind = Kind.null
        /// For a string: whether it is ASCII. For a number: whether it consists of digits and an optional sign only.
        var isPlain = true
        /// For a string: whether it contains escapes.
        var hasEscapes = false
        /// For an object: what is known about its keys.
        var keys = Keys.unknown

        /// For an object: whether a model has asked for all names, probably to store the fields in a collection. Stored
        /// in `hasEscapes`, which objects do not need.
        var isCollection: Bool {
            get { hasEscapes }
            set { hasEscapes = newValue }
        }
    }

    /// What is known about an object's keys.
    enum Keys: UInt8 {
        case unknown
        /// All keys are distinct ASCII without escapes, so their bytes in the text can be compared with names.
        case distinct
        /// The object has a dictionary of its fields: see ``DecodingCore``.
        case indexed
    }

    static let root = 1
    static let depthMax = 512
    static let bytesMax = 1 << 30
    /// If the capacity is larger than this, the memory is freed after the document, and not kept for the next one.
    private static let keptNodesMax = 1 << 16
    /// 1 KiB, which allocators have at hand.
    private static let firstCapacity = 64

    private(set) var nodes: UnsafeMutablePointer<Node>
    private(set) var capacity = Self.firstCapacity
    private(set) var count = 0
    /// Whether `start` and `end` of objects and arrays are offsets in the text.
    private let locates: Bool
    /// How many bytes of the text the last call of ``build(_:)`` has read.
    private(set) var bytesRead = 0

    init(locates: Bool = false) {
        nodes = .allocate(capacity: capacity)
        self.locates = locates
    }

    func free() { nodes.deallocate() }

    mutating func reset() {
        count = 0
        guard capacity > Self.keptNodesMax else { return }
        nodes.deallocate()
        capacity = Self.firstCapacity
        nodes = .allocate(capacity: capacity)
    }

    @inline(__always) private mutating func add(_ kind: Node.Kind, _ start: Int, _ end: Int, _ isPlain: Bool) {
        if count == capacity { (nodes, capacity) = Self.grown(nodes, capacity) }
        // All numbers fit into 32 bits: positions are below 1 GiB, and there are not more nodes than bytes.
        nodes[count] = Node(
            start: UInt32(truncatingIfNeeded: start), end: UInt32(truncatingIfNeeded: end),
            next: UInt32(truncatingIfNeeded: count &+ 1), kind: kind, isPlain: isPlain)
        count &+= 1
    }

    /// Not `mutating`, so that the index stays in registers.
    @inline(never) private static func grown(
        _ nodes: UnsafeMutablePointer<Node>, _ capacity: Int
    ) -> (UnsafeMutablePointer<Node>, Int) {
        let moved = UnsafeMutablePointer<Node>.allocate(capacity: capacity * 2)
        moved.update(from: nodes, count: capacity)
        nodes.deallocate()
        return (moved, capacity * 2)
    }

    // MARK: Building

    /// Builds the index of a text.
    /// - Returns: whether the text is accepted.
    mutating func build(_ text: UnsafeRawBufferPointer) -> Bool {
        count = 0
        add(.null, 0, 0, true)
        guard let base = text.baseAddress?.assumingMemoryBound(to: UInt8.self), text.count <= Self.bytesMax else {
            return false
        }
        // All that `buildValue` calls for common texts is inlined, and the compiler keeps these copies in registers.
        var (index, scanner) = (self, JSONScanner(base, text.count))
        let isValue = index.buildValue(&scanner)
        if isValue { scanner.skipSpace() }
        index.bytesRead = scanner.position
        self = index
        return isValue && scanner.isAtEnd
    }

    /// Adds the nodes of a value and its content. Until an object or array ends, its `next` is the node of its parent.
    @inline(__always) private mutating func buildValue(_ scanner: inout JSONScanner) -> Bool {
        var open = 0
        var depth = 0
        while true {
            // A value is expected here.
            scanner.skipSpace()
            switch scanner.next() {
            case UInt8(ascii: "\""):
                guard addString(&scanner) else { return false }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                let isObject = scanner.taken == UInt8(ascii: "{")
                depth &+= 1
                guard depth <= Self.depthMax else { return false }
                let node = count
                add(isObject ? .object : .array, scanner.position &- 1, 0, true)
                nodes[node].next = UInt32(truncatingIfNeeded: open)
                open = node
                scanner.skipSpace()
                if scanner.skip(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    close(&open, &depth, scanner.position)
                } else {
                    if isObject, !addKey(&scanner) { return false }
                    continue
                }
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                let start = scanner.position &- 1
                guard let isInteger = scanner.skipNumber() else { return false }
                add(.number, start, scanner.position, isInteger)
            case UInt8(ascii: "t"):
                guard scanner.skip(rest: "rue") else { return false }
                add(.yes, scanner.position &- 4, scanner.position, true)
            case UInt8(ascii: "f"):
                guard scanner.skip(rest: "alse") else { return false }
                add(.no, scanner.position &- 5, scanner.position, true)
            case UInt8(ascii: "n"):
                guard scanner.skip(rest: "ull") else { return false }
                add(.null, scanner.position &- 4, scanner.position, true)
            default: return false
            }
            // A value has ended here.
            while true {
                if open == 0 { return true }
                nodes[open].end &+= 1
                let isObject = nodes[open].kind == .object
                scanner.skipSpace()
                if scanner.skip(UInt8(ascii: ",")) {
                    if isObject {
                        scanner.skipSpace()
                        guard addKey(&scanner) else { return false }
                    }
                    break
                }
                guard scanner.skip(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { return false }
                close(&open, &depth, scanner.position)
            }
        }
    }

    @inline(__always) private func close(_ open: inout Int, _ depth: inout Int, _ position: Int) {
        let around = Int(nodes[open].next)
        nodes[open].next = UInt32(truncatingIfNeeded: count)
        if locates {
            nodes[open].end = UInt32(truncatingIfNeeded: position)
        } else {
            nodes[open].start = UInt32(truncatingIfNeeded: open &+ 1)
        }
        open = around
        depth &-= 1
    }

    /// Reads a key, from its opening quote to the colon after it.
    @inline(__always) private mutating func addKey(_ scanner: inout JSONScanner) -> Bool {
        guard scanner.skip(UInt8(ascii: "\"")), addString(&scanner) else { return false }
        scanner.skipSpace()
        return scanner.skip(UInt8(ascii: ":"))
    }

    /// Reads a string whose opening quote has been read.
    @inline(__always) private mutating func addString(_ scanner: inout JSONScanner) -> Bool {
        let start = scanner.position
        if scanner.skipPlainString() {
            add(.string, start, scanner.position &- 1, true)
            return true
        }
        // A copy, because `skipString` is not inlined.
        var copy = scanner
        let skipped = copy.skipString()
        scanner = copy
        guard let string = skipped else { return false }
        add(.string, start, scanner.position &- 1, string.isASCII)
        nodes[count &- 1].hasEscapes = string.hasEscapes
        return true
    }
}
