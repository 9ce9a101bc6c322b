import LarderOriginClients
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests with a redis-server that uses TLS.
@Suite struct EncryptedServerTests {
    /// A redis-server with a certificate for a name or an address.
    private struct Encrypted {
        let directory: TemporaryDirectory
        let redis: RedisProcess
        let port: UInt16
        let plainPort: UInt16

        init(for name: String, wantsCertificates: Bool = false) throws {
            let directory = try TemporaryDirectory(inMemory: true)
            self.directory = directory
            let path = directory.path
            func openssl(_ words: String) throws {
                let result = try ChildProcess.run(
                    "openssl", words.split(separator: " ").map(String.init), directory: path)
                guard result.end == .exited(0) else { throw ChildProcess.Failure(description: result.errors) }
            }
            let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
            try openssl("req -x509 \(key) -keyout ca.key -out ca.pem -days 2 -subj /CN=ca")
            for (file, subject) in [("server", name), ("client", "DNS:client")] {
                try openssl("req \(key) -keyout \(file).key -out \(file).csr -subj /CN=\(file)")
                try Files.write(path + "/\(file).ext", Array("subjectAltName=\(subject)\n".utf8))
                try openssl(
                    "x509 -req -in \(file).csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out \(file).pem "
                        + "-extfile \(file).ext")
            }
            port = try LoopbackCluster.freePort()
            plainPort = try LoopbackCluster.freePort()
            redis = try RedisProcess([
                "--tls-port", "\(port)", "--port", "\(plainPort)", "--tls-cert-file", path + "/server.pem",
                "--tls-key-file", path + "/server.key", "--tls-ca-cert-file", path + "/ca.pem", "--tls-auth-clients",
                wantsCertificates ? "yes" : "no",
            ])
        }

        func origin(_ host: String, _ options: String, _ ears: OriginEars? = nil) throws -> RedisOrigin {
            RedisOrigin(
                try OriginAddress("rediss://\(host):\(port)\(options)"), limits: .patient, listener: ears)
        }

        var trusting: String { "?ca=\(directory.path)/ca.pem" }
    }

    @Test(.timeLimit(.minutes(10))) func readsAndInvalidationsWorkOverTLS() async throws {
        let server = try Encrypted(for: "IP:127.0.0.1,DNS:localhost")
        let ears = OriginEars()
        let origin = try server.origin("127.0.0.1", server.trusting, ears)
        defer { origin.close() }
        await origin.waitUntilBelieved()
        let large = String(repeating: "x", count: 3_000_000)
        try await origin.write("large", large)
        #expect(try await origin.value("large") == large)
        _ = try server.redis.connect().call("SET large small")
        await eventually { ears.invalidated.all == ["large"] }
        #expect(try await origin.value("large") == "small")
        let keys = (0..<5_000).map { "k\($0)" }
        #expect(await origin.readMany(keys).allSatisfy { (try? $0.get()) != nil })
        let byName = try server.origin("localhost", server.trusting)
        #expect(try await byName.value("large") == "small")
        byName.close()
    }

    @Test(.timeLimit(.minutes(10))) func aServerWithAnUntrustedCertificateIsNotUsed() async throws {
        let server = try Encrypted(for: "DNS:other.example")
        for (options, reason) in [
            ("", "not trusted"), (server.trusting, "not trusted"),
            ("?ca=\(server.directory.path)/none", "cannot be read"),
        ] {
            let origin = try server.origin("127.0.0.1", options)
            let error = await origin.error("a")
            #expect(error?.description.contains(reason) == true, "\(options): \(String(describing: error))")
            origin.close()
        }
        // A server without TLS where TLS is expected, and the other way round.
        let plain = RedisOrigin(
            try OriginAddress("rediss://127.0.0.1:\(server.plainPort)\(server.trusting)"),
            limits: .with { $0.connect = 300 })
        #expect(await plain.error("a") != nil)
        plain.close()
        let encrypted = RedisOrigin(
            try OriginAddress("redis://127.0.0.1:\(server.port)"), limits: .with { $0.connect = 300 })
        #expect(await encrypted.error("a") != nil)
        encrypted.close()
    }

    @Test(.timeLimit(.minutes(10))) func aClientCertificateIsPresented() async throws {
        let server = try Encrypted(for: "IP:127.0.0.1", wantsCertificates: true)
        let nobody = try server.origin("127.0.0.1", server.trusting)
        #expect(await nobody.error("a") != nil)
        nobody.close()
        let path = server.directory.path
        let known = try server.origin("127.0.0.1", "\(server.trusting)&cert=\(path)/client.pem&key=\(path)/client.key")
        #expect(try await known.value("a") == nil)
        known.close()
        let wrong = try server.origin("127.0.0.1", "\(server.trusting)&cert=\(path)/client.pem&key=\(path)/ca.pem")
        #expect(await wrong.error("a")?.description.contains("the key") == true)
    }
}
