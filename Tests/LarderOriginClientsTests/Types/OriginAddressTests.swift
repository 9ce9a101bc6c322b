import LarderOriginClients
import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct OriginAddressTests {
    @Test(arguments: [
        ("redis://localhost", "redis://localhost:6379"),
        ("redis://localhost:7000/3", "redis://localhost:7000/3"),
        ("redis://user:secret@10.0.0.1:7000", "redis://user@10.0.0.1:7000"),
        ("redis://:secret@10.0.0.1:7000", "redis://10.0.0.1:7000"),
        ("redis://user@h", "redis://user@h:6379"),
        ("redis://[::1]:7000", "redis://[::1]:7000"),
        ("REDISS://h:1", "rediss://h:1"),
        ("rediss://h:1?ca=/etc/ca.pem", "rediss://h:1"),
        ("redis+cluster://a:1,b:2,c", "redis+cluster://a:1,b:2,c:6379"),
        ("rediss+cluster://u:p@a:1,b:2", "rediss+cluster://u@a:1,b:2"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("unix:/run/redis.sock", "unix:///run/redis.sock"),
        ("unix:/run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
        ("unix:///run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
        ("unix:///run/l.sock?db=shop.de-1", "unix:///run/l.sock?db=shop.de-1"),
        ("unix:///run/l.sock?db=00", "unix:///run/l.sock"),
    ]) func validAddressesAreParsed(_ text: String, _ expected: String) throws {
        #expect(try OriginAddress(text).description == expected)
    }

    @Test func everyPartOfAnAddressIsParsed() throws {
        let address = try OriginAddress("redis://me:a%40b%3a@h:7000/3")
        #expect(address.user == "me" && address.password == Array("a@b:".utf8) && address.database == "3")
        #expect(address.endpoints == [.tcp(host: "h", port: 7000)] && !address.isCluster && !address.usesTLS)
        let cluster = try OriginAddress("rediss+cluster://a,b:2?ca=/c")
        #expect(cluster.isCluster && cluster.usesTLS && cluster.certificatesPath == "/c")
        #expect(cluster.endpoints == [.tcp(host: "a", port: 6379), .tcp(host: "b", port: 2)])
    }

    @Test(arguments: [
        ("", "not the address of an origin"),
        ("localhost:6379", "use redis://host:port"),
        ("http://h:1", "'http://' is not the address"),
        ("redis://", "'' is not a server"),
        ("redis://h:0", "'h:0' is not a server"),
        ("redis://h:65536", "is not a server"),
        ("redis://h:port", "is not a server"),
        ("redis://::1:7000", "[address]:port for IPv6"),
        ("redis://a:1,b:2", "use redis+cluster://"),
        ("redis://h/x", "'x' is not a database number"),
        ("unix:///l?db=65536", "use ?db=0 to ?db=65535"),
        ("unix:///l?db=a/b", "use ?db=0 or ?db=shop"),
        ("unix:///l?db=Shop", "has 1 to 64 characters of a-z"),
        ("unix:///l?db=-shop", "begins with a letter"),
        ("unix:///l?db=%73hop", "neither a number nor the name"),
        ("unix:///l?db=sch\u{F6}n", "neither a number nor the name"),
        ("unix:///l?db=" + String(repeating: "x", count: 65), "has 1 to 64 characters"),
        ("unix:///l?db=0.outbox", "is reserved"),
        ("unix:///l?db=_replication", "is reserved"),
        ("redis+cluster://h/1", "only database 0"),
        ("redis+cluster://a:1,,b:2", "is not a server"),
        ("unix://relative", "absolute path"),
        ("unix:relative", "absolute path"),
        ("unix:", "absolute path"),
        ("unix:/l?cb=2", "'?cb' is not an option"),
        ("unix:///" + String(repeating: "x", count: 200), "longer than"),
        ("redis://h?db=1", "'?db' is not an option"),
        ("redis://h?ca=/x", "'?ca' is not an option"),
        ("rediss://h?ca=/x&key=/k&ca=/y", "'ca=' is given twice"),
        ("redis://u:%zz@h", "hexadecimal"),
        ("redis://u:%4@h", "hexadecimal"),
    ]) func invalidAddressesAreRefused(_ text: String, _ reason: String) {
        do {
            let address = try OriginAddress(text)
            Issue.record("\(text) is read as \(address)")
        } catch { #expect(error.description.contains(reason), "\(error)") }
    }

    @Test func errorsNeverContainThePassword() {
        for text in [
            "redis://u:hush@h:x", "u:hush@h", "http://u:hush@h", "redis://u:hush@h,b", "redis://u:hush@h/q?z=1",
        ] {
            do {
                _ = try OriginAddress(text)
                Issue.record("\(text) is read")
            } catch { #expect(!error.description.contains("hush"), "\(error)") }
        }
    }

    @Test func thePasswordCanBeReadFromAFile() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/password"
        try Files.write(path, Array("hush\n".utf8))
        let address = try OriginAddress("redis://h", user: "me", passwordFile: path)
        #expect(address.password == Array("hush".utf8) && address.user == "me")
        #expect(throws: OriginAddress.Failure.self) { try OriginAddress("redis://h", passwordFile: path + "2") }
        try Files.write(path, Array("\n".utf8))
        #expect(throws: OriginAddress.Failure.self) { try OriginAddress("redis://h", passwordFile: path) }
    }
}
