import Foundation
import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of calls with lifetimes. An invalid lifetime is an error; it is never replaced by the database's policy.
@Suite(.timeLimit(.minutes(10))) struct LifetimeTests {
    private static let impossible: [Double] = [0, -1, -0.5, 0.0001, .nan, .infinity, -.infinity, 1e300]

    private func expectRefusal(_ what: String, _ body: () async throws -> Void) async {
        do {
            try await body()
            Issue.record("\(what) was accepted")
        } catch let error as LarderClientError {
            #expect(error.code == .invalidArgument && error.key == "k", "\(what): \(error)")
            #expect(error.localizedDescription == error.description)
        } catch {
            Issue.record("\(what): \(error)")
        }
    }

    @Test(arguments: LiveServer.allCases)
    func lifetimesOutOfRangeAreErrors(server: LiveServer) async throws {
        try await server.run { path in
            let client = try await LarderClient.connect(socketPath: path)
            let blocking = try BlockingLarderClient(socketPath: path)
            let numbers = client.cache(of: Int.self)
            for seconds in Self.impossible {
                let policy = EntryPolicy.seconds(seconds)
                await expectRefusal("set") { try await numbers.set(1, forKey: "k", policy: policy) }
                await expectRefusal("setBytes") { try await numbers.setBytes([1], forKey: "k", policy: policy) }
                await expectRefusal("pairs") { try await numbers.set(["k": 1], policy: policy) }
                await expectRefusal("absent") { _ = try await numbers.setIfAbsent(1, forKey: "k", policy: policy) }
                await expectRefusal("present") { _ = try await numbers.setIfPresent(1, forKey: "k", policy: policy) }
                await expectRefusal("replace") {
                    _ = try await numbers.replace(1, with: 2, forKey: "k", policy: policy)
                }
                await expectRefusal("batch") {
                    try await numbers.batch { try $0.setBytes([1], forKey: "k", policy: policy) }
                }
                await expectRefusal("transaction") {
                    try await numbers.transaction(watching: [String]()) { try $0.set(1, forKey: "k", policy: policy) }
                }
                await expectRefusal("blocking") { try blocking.set(1, forKey: "k", policy: policy) }
                await expectRefusal("blocking bytes") { try blocking.setBytes([1], forKey: "k", policy: policy) }
                await expectRefusal("blocking pairs") {
                    try blocking.set(["k": 1].map { ($0, $1) }, policy: policy)
                }
                await expectRefusal("blocking absent") {
                    _ = try blocking.setIfAbsent(1, forKey: "k", policy: policy)
                }
                await expectRefusal("blocking batch") {
                    try blocking.batch { try $0.setBytes([1], forKey: "k", policy: policy) }
                }
            }
            #expect(try await numbers.value(forKey: "k") == nil)
            client.close()
        }
    }

    @Test(arguments: LiveServer.allCases)
    func everyLifetimeIsStoredAsSpecified(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Int.self)
            try await numbers.set(1, forKey: "never", policy: .never)
            try await numbers.set(1, forKey: "every", policy: .seconds(90))
            try await numbers.set(1, forKey: "until", policy: .until(Date(timeIntervalSinceNow: 100)))
            try await numbers.set(["a": 1, "b": 2], policy: .until(Date(timeIntervalSinceNow: 100)))
            try await numbers.set(1, forKey: "past", policy: .until(Date(timeIntervalSince1970: -5)))
            #expect(try await numbers.timeToLive(forKey: "never") == .never)
            for (key, most) in [("every", 90_000), ("until", 101_000), ("a", 101_000)] as [(String, Int64)] {
                guard case .milliseconds(let left) = try await numbers.timeToLive(forKey: key) else {
                    Issue.record("\(key) does not expire")
                    continue
                }
                #expect(left > most - 60_000 && left <= most, "\(key)")
            }
            #expect(try await numbers.value(forKey: "past") == nil)
        }
    }
}
