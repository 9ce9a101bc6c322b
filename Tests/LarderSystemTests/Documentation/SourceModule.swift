import Foundation
import LarderTestSupport
import Testing

/// A file of Swift source, as text without its comments and string literals.
struct SourceFile: Hashable, Sendable {
    struct Function {
        let line: Int
        let lineCount: Int
    }

    /// The path, relative to the package's directory.
    let path: String
    /// The lines of code, without comments.
    let lines: [Substring]

    init(path: String, text: String) {
        self.path = path
        let code = text.replacing(/"""[\s\S]*?"""/) { match in
            // Keep the line breaks, so that lines keep their numbers.
            "\"\"" + String(repeating: "\n", count: match.output.count { $0 == "\n" })
        }.replacing(/"(?:\\.|[^"\\\n])*"/, with: "\"\"").replacing(/\/\/[^\n]*/, with: "")
        lines = code.split(separator: "\n", omittingEmptySubsequences: false)
    }

    var directory: String { path.split(separator: "/").dropLast().joined(separator: "/") }
    /// The first directory below the module's.
    var room: String {
        let parts = path.split(separator: "/")
        let depth = parts.count > 1 && SourceModule.groups.contains(String(parts[1])) ? 3 : 2
        return parts.count > depth + 1 ? String(parts[depth]) : ""
    }

    /// The types that other files can name.
    var declarations: [String] {
        lines.compactMap { line in
            guard let match = line.prefixMatch(of: Self.declaration), !line.contains("private ") else { return nil }
            return String(match.output.1)
        }
    }

    /// Words that may be names of types, each with the line of its first occurrence.
    var names: [String: Int] {
        var names: [String: Int] = [:]
        for (index, line) in lines.enumerated() {
            for match in line.matches(of: Self.name) where names[String(match.output.1)] == nil {
                names[String(match.output.1)] = index + 1
            }
        }
        return names
    }

    /// Functions and initializers with a body, found by their indentation, which `swift format` guarantees.
    var functions: [Function] {
        lines.indices.compactMap { start in
            let line = lines[start]
            guard line.firstMatch(of: Self.function) != nil, !line.hasSuffix("}") else { return nil }
            let indent = line.prefix { $0 == " " }
            let end = lines[(start + 1)...].firstIndex {
                $0 == indent + "}" || $0.hasPrefix(indent) && isNext($0, indent)
            }
            guard let end, lines[end] == indent + "}" else { return nil }
            return Function(line: start + 1, lineCount: end - start + 1)
        }
    }

    /// Whether a line of the same indentation is another member. If so, the function before it has no body of several
    /// lines.
    private func isNext(_ line: Substring, _ indent: Substring) -> Bool {
        let rest = line.dropFirst(indent.count)
        return rest.firstMatch(of: Self.function) != nil && rest.first != " "
    }

    // Immutable, but a Regex is not Sendable.
    private nonisolated(unsafe) static let declaration =
        /(?:@\w+(?:\([^)]*\))? )*(?:package |public |final |indirect )*(?:class|struct|enum|protocol|actor|typealias) (\w+)/
    private nonisolated(unsafe) static let name = /(?:^|[^.\w])([A-Z]\w+)/
    private nonisolated(unsafe) static let function = /^ *(?:@\w+(?:\([^)]*\))? )*(?:[a-z()]+ )*(?:func |init[(<?])/
}

/// The files of one module, and their references to each other.
struct SourceModule {
    struct Reference {
        let from: SourceFile
        let line: Int
        let name: String
        let to: SourceFile
    }

    let files: [SourceFile]
    let references: [Reference]

    init(_ files: [SourceFile]) {
        self.files = files
        var home: [String: SourceFile] = [:]
        for file in files { for name in file.declarations where home[name] == nil { home[name] = file } }
        references = files.flatMap { file in
            file.names.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.compactMap { name, line in
                home[name].flatMap { $0 == file ? nil : Reference(from: file, line: line, name: name, to: $0) }
            }
        }
    }

    /// The directories below Sources that contain several modules.
    static let groups = ["Engine", "Server", "Shared", "System"]

    init(_ name: String) throws {
        let candidates = ["Sources/"] + Self.groups.map { "Sources/\($0)/" }
        let directory = try #require(
            candidates.map { $0 + name }.first { FileManager.default.fileExists(atPath: PackageRoot.path + "/" + $0) })
        self.init(try Self.files(below: directory))
    }

    static func allFiles() throws -> [SourceFile] { try files(below: "Sources") }

    static func files(below directory: String) throws -> [SourceFile] {
        try paths(below: directory).map { SourceFile(path: $0, text: try DocsTests.read($0)) }
    }

    /// All Swift files below a directory of the package, without the steps of tutorials, as paths relative to the
    /// package's directory.
    static func paths(below directory: String) -> [String] {
        let found = FileManager.default.enumerator(atPath: PackageRoot.path + "/" + directory)
        let paths = found?.compactMap { $0 as? String } ?? []
        return paths.filter { $0.hasSuffix(".swift") && !$0.contains(".docc/") }.sorted().map { directory + "/" + $0 }
    }

    /// The groups of several files in which each file depends on every other, directly or indirectly.
    var cycles: [[SourceFile]] { cycles { $0 } }

    /// The groups of several directories in which each directory depends on every other, directly or indirectly.
    var directoryCycles: [[String]] { cycles(\.directory) }

    private func cycles<Node: Hashable>(_ node: (SourceFile) -> Node) -> [[Node]] {
        let next = Dictionary(grouping: references) { node($0.from) }.mapValues { Set($0.map { node($0.to) }) }
        var search = ComponentSearch(next: next)
        for file in files { search.visit(node(file)) }
        return search.components.filter { $0.count > 1 }
    }
}

/// The search for the strongly connected components of a graph (Tarjan, 1972).
private struct ComponentSearch<Node: Hashable> {
    let next: [Node: Set<Node>]
    private(set) var components: [[Node]] = []
    private var number: [Node: Int] = [:]
    private var lowest: [Node: Int] = [:]
    private var open: [Node] = []

    init(next: [Node: Set<Node>]) { self.next = next }

    mutating func visit(_ node: Node) {
        guard number[node] == nil else { return }
        let own = number.count
        number[node] = own
        lowest[node] = own
        open.append(node)
        for other in next[node] ?? [] {
            visit(other)
            if open.contains(other) { lowest[node] = min(lowest[node] ?? own, lowest[other] ?? own) }
        }
        guard lowest[node] == own, let start = open.firstIndex(of: node) else { return }
        components.append(Array(open[start...]))
        open.removeSubrange(start...)
    }
}
