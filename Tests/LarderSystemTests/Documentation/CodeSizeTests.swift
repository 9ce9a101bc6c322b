import Foundation
import LarderTestSupport
import Testing

/// Tests that the code does not grow again: prints its size, and fails if a figure exceeds its limit.
@Suite struct CodeSizeTests {
    private struct Figure {
        let name: String
        let value: Int
        /// The limit. Lower it when the code shrinks.
        let most: Int
    }

    private static let kinds: Set<Substring> = ["class", "struct", "enum", "protocol", "actor", "extension"]

    /// The kind, the name and the inherited types of the declaration in a line; nil if it declares no type.
    private static func declaration(_ line: Substring) -> (kind: Substring, name: String, inherited: Set<String>)? {
        guard kinds.contains(where: { line.contains($0 + " ") }), !line.contains("import ") else { return nil }
        let words = line.split(whereSeparator: { !$0.isLetter && !$0.isNumber && !"_@:".contains($0) })
        guard let index = words.firstIndex(where: kinds.contains), index + 1 < words.count else { return nil }
        let isModified = words[..<index].allSatisfy { $0.first?.isLowercase == true || $0.first == "@" }
        let parts = words[(index + 1)...].joined(separator: " ").split(separator: ":", maxSplits: 1)
        guard isModified, let name = parts.first?.split(separator: " ").first, name.first?.isUppercase == true else {
            return nil
        }
        return (words[index], String(name), parts.count < 2 ? [] : Set(parts[1].split(separator: " ").map(String.init)))
    }

    /// The files of a type and of its extensions.
    private static func files(of type: String, _ files: [SourceFile]) -> [SourceFile] {
        files.filter { $0.path.hasSuffix("/\(type).swift") || $0.path.contains("/\(type)+") }
    }

    /// The lines of a type and of its extensions, in whatever files they are.
    private static func lines(of type: String, _ files: [SourceFile]) -> [Substring] {
        files.flatMap { file in
            var isInside = false
            return file.lines.filter { line in
                if !line.hasPrefix(" "), declaration(line)?.name == type { isInside = true }
                defer { if line.hasPrefix("}") { isInside = false } }
                return isInside
            }
        }
    }

    private static func lineCount(_ files: [SourceFile]) -> Int { files.reduce(0) { $0 + $1.lines.count - 1 } }

    /// The number of lines that contain all of some words.
    private static func lineCount(_ files: [SourceFile], with words: String...) -> Int {
        files.reduce(0) { count, file in count + file.lines.count { line in words.allSatisfy(line.contains) } }
    }

    /// The number of stored properties of the types that some files declare at their top level.
    private static func storedPropertyCount(_ files: [SourceFile]) -> Int {
        let property = /^ {4}(?:[a-z]+(?:\([a-z]+\))? )*(?:let|var) [^{]*(?:$|\{ didSet)/
        return files.reduce(0) { count, file in
            count + file.lines.count { $0.firstMatch(of: property) != nil && !$0.contains("static ") }
        }
    }

    @Test func theCodeStaysWithinItsSizeLimits() throws {
        let files = try SourceModule.allFiles()
        #expect(
            Self.declaration("    private final class Old: Store, @unchecked Sendable {")?.inherited.contains("Store")
                == true)
        let engine = files.filter { $0.path.hasPrefix("Sources/Engine/LarderEngine/") }
        let declarations = files.flatMap { $0.lines.compactMap(Self.declaration) }
        let types = declarations.filter { $0.kind != "extension" }
        let protocols = types.filter { $0.kind == "protocol" }.map(\.name)
        let tests = try SourceModule.files(below: "Tests").flatMap { $0.lines.compactMap(Self.declaration) }
        let conformers = { (name: String) in
            (declarations + tests).count { $0.kind != "protocol" && $0.inherited.contains(name) }
        }
        let database = Self.lines(of: "Database", engine)
        let session = Self.lines(of: "Session", files)
        let folders = Set(files.compactMap { $0.path.split(separator: "/").dropFirst().first })
        let figures = [
            Figure(name: "lines of Swift in Sources", value: Self.lineCount(files), most: 116_696),
            Figure(name: "files", value: files.count, most: 743),
            Figure(name: "types", value: types.count, most: 1595),
            Figure(name: "folders directly below Sources", value: folders.count, most: 12),
            Figure(name: "files under 30 lines", value: files.count { $0.lines.count <= 30 }, most: 8),
            Figure(name: "files above 600 lines", value: files.count { $0.lines.count > 601 }, most: 0),
            Figure(name: "protocols with one conformer", value: protocols.count { conformers($0) < 2 }, most: 5),
            Figure(
                name: "@unchecked Sendable", value: Self.lineCount(files, with: "@unchecked Sendable"), most: 73),
            Figure(name: "lines of Database", value: database.count, most: 1783),
            Figure(
                name: "package functions of Database",
                value: database.count { $0.contains("package") && $0.contains("func ") }, most: 29),
            Figure(name: "lines of Session", value: session.count, most: 414),
            Figure(
                name: "stored properties of Session",
                value: Self.storedPropertyCount(Self.files(of: "Session", files)), most: 20),
        ]
        for figure in figures {
            print("\(figure.name): \(figure.value), at most \(figure.most)")
            #expect(figure.value <= figure.most, "\(figure.name)")
        }
    }
}
