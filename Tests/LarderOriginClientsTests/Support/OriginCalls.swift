import Dispatch
import LarderOriginClients
import LarderPlatform
import LarderRESP
import LarderTestSupport

/// An origin's calls for tests, with keys and values as text.
extension Origin {
    func readMany(_ keys: [String]) async -> [Result<OriginReading, OriginError>] {
        await withCheckedContinuation { done in read(keys.map { Array($0.utf8) }) { done.resume(returning: $0) } }
    }

    func reading(_ key: String) async throws -> OriginReading { try await readMany([key])[0].get() }

    /// The value as text; nil if there is none.
    func value(_ key: String) async throws -> String? {
        try await reading(key).value.map { String(decoding: $0, as: UTF8.self) }
    }

    func error(_ key: String) async -> OriginError? {
        if case .failure(let error) = await readMany([key])[0] { error } else { nil }
    }

    @discardableResult
    func write(
        _ key: String, _ value: String, _ lifetime: OriginWrite.Lifetime = .unlimited
    ) async throws -> OriginAcknowledgement {
        try await withCheckedContinuation { done in
            write(OriginWrite(key: Array(key.utf8), value: Array(value.utf8), lifetime: lifetime)) {
                done.resume(returning: $0)
            }
        }.get()
    }

    /// Writes all keys, and then waits once. With a wait for each key, other tests would delay each of thousands of
    /// waits.
    func writeMany(_ keys: [String], _ value: String) async throws {
        let failures = Recorder<OriginError>()
        let waiting = DispatchGroup()
        for key in keys {
            waiting.enter()
            write(OriginWrite(key: Array(key.utf8), value: Array(value.utf8), lifetime: .unlimited)) {
                if case .failure(let error) = $0 { failures.add(error) }
                waiting.leave()
            }
        }
        await withCheckedContinuation { done in waiting.notify(queue: .global()) { done.resume() } }
        if let first = failures.all.first { throw first }
    }

    @discardableResult
    func remove(_ keys: [String]) async throws -> Int {
        try await withCheckedContinuation { done in
            remove(keys.map { Array($0.utf8) }) { done.resume(returning: $0) }
        }.get()
    }

    @discardableResult
    func perform(_ line: String, key: String?) async throws -> RESPValue {
        try await withCheckedContinuation { done in
            perform(line.split(separator: " ").map { Array($0.utf8) }, key: key.map { Array($0.utf8) }) {
                done.resume(returning: $0)
            }
        }.get()
    }

    func isCurrentNow(_ stamp: OriginStamp?) -> Bool {
        stamp.map { isCurrent($0, now: MonotonicClock.nanoseconds()) } ?? false
    }

    /// Waits until the values that are read can be trusted.
    func waitUntilBelieved() async { await eventually { status().servers.contains { $0.isUp } } }
}

/// Records everything that an origin reports.
final class OriginEars: OriginListener {
    let invalidated = Recorder<String>()
    let lost = Recorder<String>()
    let recovered = Recorder<String>()

    func originInvalidated(_ keys: [[UInt8]]) {
        for key in keys { invalidated.add(String(decoding: key, as: UTF8.self)) }
    }
    func originLost(_ reason: String) { lost.add(reason) }
    func originRecovered(_ server: String) { recovered.add(server) }
}

extension OriginAddress {
    /// Returns the address of the server at a socket.
    static func at(_ path: String) throws -> OriginAddress { try OriginAddress("unix://" + path) }
}

extension OriginLimits {
    /// Limits for tests that must not miss a heartbeat, however busy the machine is.
    static var patient: OriginLimits {
        with {
            $0.heartbeatLimit = 20_000
            $0.call = 20_000
        }
    }

    /// Returns the limits with some of them changed.
    static func with(_ change: (inout OriginLimits) -> Void) -> OriginLimits {
        var limits = OriginLimits()
        change(&limits)
        return limits
    }
}
