import Foundation
import LarderTestSupport
import Testing

/// Tests of the code in README. Its Swift is compiled as part of the examples. Its shell session prints the output that
/// README shows.
@Suite struct DocsReadmeTests {
    /// The fenced blocks of a language.
    static func blocks(_ language: String, in text: String) -> [[String]] {
        var blocks: [[String]] = []
        var current: [String]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if let block = current {
                if line.hasPrefix("```") {
                    blocks.append(block)
                    current = nil
                } else {
                    current = block + [line]
                }
            } else if line == "```" + language {
                current = []
            }
        }
        return blocks
    }

    @Test func theSwiftCodeOfREADMEIsPartOfTheExamples() throws {
        try Self.expectSwift(of: "README.md", in: Self.examples())
    }

    @Test func theSwiftCodeOfTheQueriesPageIsTested() throws {
        let tests = try DocsTests.read("Tests/LarderClientTests/Queries/QueriesPageTests.swift")
        try Self.expectSwift(of: "docs/Queries.md", in: [tests])
    }

    /// The sources of the examples, which other tests build.
    static func examples() throws -> [String] {
        let found = try FileManager.default.subpathsOfDirectory(atPath: PackageRoot.path + "/Examples")
        return try found.filter { $0.hasSuffix(".swift") && !$0.contains(".build/") }.map {
            try DocsTests.read("Examples/" + $0)
        }
    }

    /// Expects that a page's code also occurs in sources that are compiled.
    static func expectSwift(of page: String, in sources: [String]) throws {
        let blocks = blocks("swift", in: try DocsTests.read(page))
        let sources = sources.map(squeezed)
        #expect(!blocks.isEmpty)
        for block in blocks {
            let text = block.joined(separator: "\n")
            #expect(sources.contains { $0.contains(squeezed(text)) }, "\(page): nothing compiles this:\n\(text)")
        }
    }

    /// Removes indentation and empty lines, which differ if the code is inside a function.
    private static func squeezed(_ text: String) -> String {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "\n")
    }

    @Test(arguments: ["README.md", "docs/Operating.md"])
    func shellSessionsPrintTheirDocumentedOutput(_ page: String) throws {
        let session = try #require(Self.blocks("console", in: DocsTests.read(page)).first)
        let directory = try TemporaryDirectory()
        let script = Self.script(session)
        let output = try Self.run(script, in: directory.path)
        let shown = session.filter { !$0.hasPrefix("$ ") }
        let printed = output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init).dropLast()
        #expect(shown.count == printed.count, "printed:\n\(output)")
        for (expected, line) in zip(shown, printed) {
            #expect(Self.matches(expected, line), "\(page) shows '\(expected)', printed was '\(line)'")
        }
    }

    /// Converts the session's commands to a script, which starts the daemon without output and waits for it.
    private static func script(_ session: [String]) -> String {
        session.filter { $0.hasPrefix("$ ") }.map { String($0.dropFirst(2)) }.map { command in
            command == "larderd --dir larder & sleep 1"
                ? "larderd --dir larder 2>log & for try in $(seq 1200); do "
                    + "larderctl ping >/dev/null 2>&1 && break; sleep 0.05; done" : command
        }.joined(separator: "\n") + "\nwait\n"
    }

    private static func run(_ script: String, in directory: String) throws -> String {
        let process = Process()
        // Run on a terminal, as the reader does: some programs print differently into a pipe.
        process.executableURL = URL(filePath: "/usr/bin/script")
        let file = directory + "/session.sh"
        try ("trap 'kill $(jobs -p) 2>/dev/null' EXIT\n" + script).write(
            toFile: file, atomically: true, encoding: .utf8)
        process.arguments = ["-qec", "bash \(file)", "/dev/null"]
        process.currentDirectoryURL = URL(filePath: directory)
        var environment = ProcessInfo.processInfo.environment
        environment["LARDER_SOCKET"] = directory + "/socket"
        environment["PATH"] = DocsTests.products + ":" + (environment["PATH"] ?? "")
        process.environment = environment
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: output.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    }

    /// Whether a line matches the shown one, in which `…` stands for any text.
    private static func matches(_ shown: String, _ line: String) -> Bool {
        let parts = shown.components(separatedBy: "…")
        guard parts.count > 1 else { return shown == line }
        var rest = line[...]
        guard let first = parts.first, let last = parts.last, rest.hasPrefix(first), rest.hasSuffix(last) else {
            return false
        }
        for part in parts where !part.isEmpty {
            guard let range = rest.range(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return true
    }
}
