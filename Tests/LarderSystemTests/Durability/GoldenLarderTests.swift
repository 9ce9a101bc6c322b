import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that the daemon serves a larder of version 0.1.0 whose daemon was killed with SIGKILL.
@Suite struct GoldenLarderTests {
    /// Version 0.1.0 stored purges, functions and origins in the files TAGS, FUNCTIONS and ORIGINS.
    @Test("purges, functions and origins of version 0.1.0 are migrated")
    func purgesFunctionsAndOriginsOf010AreMigrated() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let larder = place.path + "/larder"
        try Files.copy(PackageRoot.path + "/Tests/LarderEngineTests/Golden/release-0.1.0", to: larder)
        for life in 0..<3 {
            let daemon = try DaemonProcess(in: place)
            let client = try daemon.connect()
            #expect(try client.call("FCALL answer 0") == ":42\r\n", "in life \(life)")
            #expect(try client.call("SELECT cache") == "+OK\r\n")
            let origin = try client.call("ORIGIN")
            #expect(["redis://127.0.0.1:1/3", "around"].allSatisfy { origin.contains("\r\n\($0)\r\n") }, "\(origin)")
            #expect(try client.call("SELECT books") == "+OK\r\n")
            #expect(try client.call("POLICY").contains("\r\nnever\r\n"))
            for key in ["purged", "purged-last", "stale", "graceless"] {
                #expect(try client.call("GET \(key)") == "$-1\r\n", "\(key) in life \(life)")
            }
            for (key, value) in [("plain", "1"), ("kept", "1"), ("purged-too", "2"), ("fresh", "2")] {
                #expect(try client.call("GET \(key)") == "$1\r\n\(value)\r\n", "\(key) in life \(life)")
            }
            for file in ["FUNCTIONS", "ORIGINS", "books/TAGS"] {
                #expect(!FileSystem.exists("\(larder)/\(file)"), "\(file) was migrated and removed")
            }
            client.close()
            if life == 0 { daemon.kill() } else { #expect(try daemon.stop() == .exited(0)) }
            #expect(!daemon.process.errors.contains(" error "), "\(daemon.process.errors)")
        }
    }
}
