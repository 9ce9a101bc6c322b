import LarderTestSupport

/// The number of a file or directory in a recorded file system. Unlike inode numbers, these numbers are never reused.
typealias NodeNumber = Int

/// The effect of one call on directory entries.
struct NameChange {
    struct Place: Hashable {
        let directory: NodeNumber
        let name: String
    }

    /// The end of the record in the trace.
    let end: Int
    /// The removed entry.
    var removed: Place?
    /// The new or replaced entry.
    var added: (place: Place, node: NodeNumber)?

    func touches(_ directory: NodeNumber) -> Bool {
        removed?.directory == directory || added?.place.directory == directory
    }

    func concerns(_ place: Place) -> Bool { removed == place || added?.place == place }
}

/// The entries of all directories at one point.
struct NameTree {
    static let root: NodeNumber = 0
    /// The names and nodes in each directory. Directories that cannot be reached from the root are ignored.
    private(set) var entries: [NodeNumber: [String: NodeNumber]] = [root: [:]]

    mutating func apply(_ change: NameChange) {
        if let place = change.removed { entries[place.directory, default: [:]][place.name] = nil }
        if let (place, node) = change.added { entries[place.directory, default: [:]][place.name] = node }
    }

    mutating func addDirectory(_ node: NodeNumber) { entries[node] = [:] }

    /// The place of a relative path, whether or not it exists.
    func place(_ path: String) -> NameChange.Place? {
        var words = path.split(separator: "/").map(String.init)
        guard let last = words.popLast() else { return nil }
        var directory = Self.root
        for word in words {
            guard let next = entries[directory]?[word] else { return nil }
            directory = next
        }
        return NameChange.Place(directory: directory, name: last)
    }

    func node(_ path: String) -> NodeNumber? {
        if path.isEmpty { return Self.root }
        return place(path).flatMap { entries[$0.directory]?[$0.name] }
    }

    /// All nodes reachable from the root with their paths, directories before their contents.
    func reachable(isDirectory: (NodeNumber) -> Bool) -> [(path: String, node: NodeNumber)] {
        var found: [(path: String, node: NodeNumber)] = []
        func visit(_ directory: NodeNumber, _ prefix: String) {
            for (name, node) in (entries[directory] ?? [:]).sorted(by: { $0.key < $1.key }) {
                found.append((prefix + name, node))
                if isDirectory(node) { visit(node, prefix + name + "/") }
            }
        }
        visit(Self.root, "")
        return found
    }
}
