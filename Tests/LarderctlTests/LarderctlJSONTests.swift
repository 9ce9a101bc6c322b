import LarderRESP
import LarderTestSupport
import Testing

@testable import larderctl

/// Tests that `--json` also applies to errors, and to replies with lines of fields.
@Suite struct LarderctlJSONTests {
    @Test func errorsArePrintedAsJSONWithTheOptionJSON() throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        let larderctl = Larderctl(socketPath: server.path)
        func error(_ words: String...) throws -> (exit: CInt, text: String) {
            let result = try larderctl.run(words)
            #expect(result.text.isEmpty && result.errors.hasSuffix("}}\n"), "\(result)")
            return (result.exitCode, result.errors)
        }
        #expect(
            try error("--json", "get")
                == (
                    2,
                    #"{"error":{"code":"usage","message":"too few arguments: larderctl get KEY","exit":2,"help":"#
                        + "\"larderctl help get\"}}\n"
                ))
        #expect(try error("--json", "frob\u{1}").text.contains(#""message":"'frob"#))
        #expect(try error("frob", "--json").exit == 2)
        #expect(try error("--json", "set", "a", "--file", "/nowhere").text.contains(#""code":"inputOutput""#))
        let refused = try larderctl("--json", "GET", "a", "b")
        #expect(
            refused.exitCode == 4 && refused.errors.contains(#"{"error":{"code":"server","message":"ERR "#),
            "\(refused)")
        let gone = try Larderctl(socketPath: "/nowhere")("--json", "ping")
        #expect(gone.exitCode == 3 && gone.errors.hasPrefix(#"{"error":{"code":"noDaemon","#), "\(gone)")
        // After the name of a daemon's command, `--json` is an argument of that command.
        #expect(try larderctl("GET", "a", "--json").errors.hasPrefix("larderctl: ERR "))
    }

    @Test func infoIsPrintedAsAJSONObject() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let info = try larderctl("--json", "INFO", "server", "clients").text
        #expect(info.hasPrefix(#"{"server":{"redis_version":"#) && info.contains(#""clients":{"connected_clients":1,"#))
        let list = try larderctl("--json", "CLIENT", "LIST").text
        #expect(list.hasPrefix(#"[{"id":"#) && list.contains(#","db":"0","#) && list.hasSuffix("}]\n"), "\(list)")
        #expect(try larderctl("--json", "client", "info").text.hasPrefix(#"{"id":"#))
        // Replies of other commands are not parsed.
        #expect(try larderctl("--json", "echo", "a=1 b=2").text == "\"a=1 b=2\"\n")
    }

    @Test func bytesThatAreNotTextArePrintedAsValidJSON() {
        var bytes: [UInt8] = []
        FieldText.sections(Array("# A b\r\nn:1\r\npath:/".utf8) + [0xFF] + Array("\r\nv:1.20\r\nw:01\r\n".utf8))
            .write(to: &bytes)
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == #"{"a-b":{"n":1,"path":{"base64":"L/8="},"v":1.2,"w":"01"}}"#)
    }

    /// The form of the output must not depend on whether a map's keys are numbers.
    @Test func mapsArePrintedAsJSONObjects() {
        func text(_ keys: [RESPValue]) -> String {
            var bytes: [UInt8] = []
            JSONText(.map(keys.map { RESPValue.Pair(key: $0, value: .integer(1)) })).write(to: &bytes)
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(text([.bulk(Array("a".utf8)), .integer(2)]) == #"{"a":1,"2":1}"#)
        #expect(text([.bulk([0xFF])]) == #"[{"base64":"/w=="},1]"#)
    }
}
