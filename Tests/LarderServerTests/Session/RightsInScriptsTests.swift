import LarderEngine
import LarderPlatform
import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of rights that are revoked while a script or a function runs.
@Suite struct RightsInScriptsTests {
    private static let user = PeerCredentials(user: 50_001, groups: [])

    private static func rules(_ text: String) throws -> AccessRules {
        var rules = AccessRules()
        rules.others = try AccessRule.parse(text, nil)
        return rules
    }

    /// Returns a client with all rights, and the ID of another connection. When the client sends `CLIENT KILL ID` with
    /// this ID, the client's rights change to `after`.
    private func losing(_ server: SocketlessServer, _ after: String) throws -> (client: TestClient, victim: Int64) {
        server.state.change(try Self.rules("user:50001=administer"))
        let (state, left) = (server.state, try Self.rules(after))
        let id = state.newClientID()
        let victim = ClientRecord(id: id, address: "", descriptor: -1, now: 0) { _ in state.change(left) }
        state.clientRegistry.add(victim, server.pushes)
        return (server.connect(as: Self.user), id)
    }

    private static let library =
        "#!lua name=l\nredis.register_function('f', function(k) return redis.call('set', k[1], 'AFTER') end)"

    /// In one pipeline, a command revokes the rights, and scripts follow. Some scripts use the fast path, others run on
    /// the loop without it.
    @Test(arguments: ["EVAL", "EVAL of other keys", "FCALL"]) func newRightsApplyToTheNextScript(_ how: String) throws {
        let server = try SocketlessServer()
        let (client, victim) = try losing(server, "user:50001=read")
        #expect(client("SET k v") == Wire.ok)
        #expect(client(["FUNCTION", "LOAD", Self.library]) == Wire.bulk("l"))
        let text = "return redis.call('set', 'k', 'AFTER')"
        let call =
            how == "FCALL" ? ["FCALL", "f", "1", "k"] : ["EVAL", text] + (how == "EVAL" ? ["1", "k"] : ["0"])
        // Run it first, so that it is cached and can use the fast path.
        for _ in 0..<3 { #expect(client(call) == Wire.ok) }
        #expect(client("SET k v") == Wire.ok)
        client.feed(encodeRequest(["CLIENT", "KILL", "ID", "\(victim)"]) + encodeRequest(call))
        server.commit()
        let answer = client.takeSendable()
        #expect(answer.hasPrefix(":1\r\n-NOPERM User 50001 has no permissions to run the 'set'"), "\(answer)")
        #expect(client("GET k") == Wire.bulk("v"))
    }

    @Test func rightsRevokedDuringEXECApplyToItsLaterCommands() throws {
        let server = try SocketlessServer()
        let (client, victim) = try losing(server, "user:50001=read")
        #expect(client("SET k v") == Wire.ok)
        #expect(client("MULTI") == Wire.ok)
        #expect(client("CLIENT KILL ID \(victim)") == "+QUEUED\r\n")
        #expect(client(["EVAL", "return redis.call('set', 'k', 'AFTER')", "1", "k"]) == "+QUEUED\r\n")
        let answer = client("EXEC")
        #expect(answer.contains("-NOPERM User 50001 has no permissions to run the 'set'"), "\(answer)")
        #expect(client("GET k") == Wire.bulk("v"))
    }

    /// In a script without locks, each call after the change is refused, and none of the script's earlier changes is
    /// applied.
    @Test(arguments: ["return 0", "redis.call('set', 'c', 'AFTER') return 0"])
    func revokedRightsStopARunningScript(_ end: String) throws {
        let server = try SocketlessServer(time: SystemTimeSource())
        server.state.change(try Self.rules("user:50001=write"))
        let client = server.connect(as: Self.user)
        #expect(client("SET c 1") == Wire.ok)
        let (state, none) = (server.state, try Self.rules("user:50009=read"))
        let thread = WorkThread(name: "rules") {
            while state.scripts.runningCount == 0 { WorkThread.sleep(nanoseconds: 100_000) }
            state.change(none)
        }
        let text = """
            redis.call('set', 'c', 'STEP1')
            for i = 1, 100000 do
                local reply = redis.pcall('get', 'c')
                if type(reply) == 'table' and reply.err then break end
                for j = 1, 100000 do end
            end
            \(end)
            """
        let answer = client(["EVAL", text, "0"])
        thread.join()
        #expect(answer.hasPrefix("-NOPERM User 50001 has no permissions to run the 'set'"), "\(answer)")
        let other = server.connect(as: PeerCredentials(user: 0, groups: []))
        #expect(other("GET c") == Wire.bulk("1"))
    }

    /// A long script runs without locks, and its commands are then repeated with locks. If the repeated SELECT is
    /// refused, the script's writes must not be applied to the first database.
    @Test func revokedRightsDoNotRedirectWritesToAnotherDatabase() throws {
        let server = try SocketlessServer(time: SystemTimeSource())
        server.state.change(try Self.rules("user:50001=write"))
        let client = server.connect(as: Self.user)
        #expect(client("SET c 1") == Wire.ok)
        let (state, less) = (server.state, try Self.rules("user:50001=write@0"))
        let thread = WorkThread(name: "rules") {
            while state.scripts.runningCount == 0 { WorkThread.sleep(nanoseconds: 100_000) }
            state.change(less)
        }
        // This script makes no call after the rules have changed.
        let text = """
            redis.call('select', 'shop')
            redis.call('set', 'c', 'SHOP')
            for i = 1, 30000000 do end
            return 0
            """
        let answer = client(["EVAL", text, "0"])
        thread.join()
        let other = server.connect(as: PeerCredentials(user: 0, groups: []))
        #expect(other("GET c") == Wire.bulk("1"))
        #expect(answer == Wire.int(0) || answer.hasPrefix("-NOPERM User 50001"), "\(answer)")
    }
}
