import LarderTestSupport

/// A node of a recorded file system, file or directory; never used twice.
typealias NodeNumber = Int

/// What one call did to the entries of directories.
struct NameChange {
    struct Place: Hashable {
        let directory: NodeNumber
        let name: String
    }

    /// Where the record ends in the trace.
    let end: Int
    /// The entry that is no more.
    var removed: Place?
    /// The entry that is new, or says something else now.
    var added: (place: Place, node: NodeNumber)?

    func touches(_ directory: NodeNumber) -> Bool {
        removed?.directory == directory || added?.place.directory == directory
    }

    func concerns(_ place: Place) -> Bool { removed == place || added?.place == place }
}

/// The entries of all directories at some point.
struct NameTree {
    static let root: NodeNumber = 0
    /// By directory. One that is in nobody's entries does not count.
    private(set) var entries: [NodeNumber: [String: NodeNumber]] = [root: [:]]

    mutating func apply(_ change: NameChange) {
        if let place = change.removed { entries[place.directory, default: [:]][place.name] = nil }
        if let (place, node) = change.added { entries[place.directory, default: [:]][place.name] = node }
    }

    mutating func addDirectory(_ node: NodeNumber) { entries[node] = [:] }

    /// The place that a relative path names, whether or not something is there.
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

    /// What can be reached from the root, with its path, directories before what is in them.
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
