import LarderCommandCatalog
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests that the examples in docs/Protocol.md show the actual replies.
@Suite struct ProtocolExampleTests {
    private struct Step {
        let request: String
        var reply = ""
    }

    private static func steps(_ text: String) -> [Step] {
        var steps: [Step] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("> ") {
                steps.append(Step(request: String(line.dropFirst(2))))
            } else {
                steps[steps.count - 1].reply += line + "\r\n"
            }
        }
        return steps
    }

    /// The examples of docs/Protocol.md, and those of ``ProtocolExamples``, which no page shows.
    private static let groups: [String: String] = {
        var groups = ProtocolExamples.groups
        let page = (try? Files.read(PackageRoot.path + "/docs/Protocol.md")).map { String(decoding: $0, as: UTF8.self) }
        let shown = page?.firstMatch(of: /For example, under `--policy never`:\n\n```\n((?s:.*?))\n```/)
        groups["larder"] = shown.map { String($0.output.1) } ?? ""
        return groups
    }()

    @Test(arguments: groups.keys.sorted())
    func examplesOfTheProtocolGetTheDocumentedReplies(group: String) throws {
        let server = try SocketlessServer(policy: .never)
        let client = server.connect()
        // Disables the slow log, because on a busy machine any command may be slow.
        client.feed("CONFIG SET slowlog-log-slower-than -1\r\n".utf8)
        server.commit()
        #expect(client.takeSendable() == "+OK\r\n")
        let steps = Self.steps(try #require(Self.groups[group]))
        #expect(!steps.isEmpty)
        for step in steps {
            // Send the line as a user types it.
            client.feed((step.request + "\r\n").utf8)
            server.commit()
            #expect(client.takeSendable() == step.reply, "\(step.request)")
        }
    }

    /// A new command needs an example, or a reason why it has none.
    @Test func everyCommandHasAnExample() {
        let shown = Set(
            Self.groups.values.flatMap(Self.steps).compactMap {
                $0.request.split(separator: " ").first?.lowercased()
            })
        // Commands for types other than strings are excluded, because other tests compare all their replies with those
        // of Redis.
        let commands = Set(CommandMetadata.all.filter { $0.absent == nil }.map(\.name))
        let missing = commands.subtracting(shown).subtracting(ProtocolExamples.without).sorted()
        #expect(missing.isEmpty, "\(missing)")
        #expect(ProtocolExamples.without.isDisjoint(with: shown))
        #expect(ProtocolExamples.without.isSubset(of: commands))
    }
}
