// A stand-in for swift-metrics: only what Larder's integrations and their test use.

import Synchronization

public protocol RecorderHandler: AnyObject, Sendable {
    func record(_ value: Double)
}

public protocol TimerHandler: AnyObject, Sendable {
    func recordNanoseconds(_ duration: Int64)
}

public protocol MetricsFactory: Sendable {
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler
}

public enum MetricsSystem {
    private static let shared = Mutex<(any MetricsFactory)?>(nil)

    static var factory: any MetricsFactory {
        guard let factory = shared.withLock({ $0 }) else { preconditionFailure("MetricsSystem.bootstrap(_:) first") }
        return factory
    }

    public static func bootstrap(_ factory: any MetricsFactory) { shared.withLock { $0 = factory } }
}

public final class Gauge: Sendable {
    private let handler: any RecorderHandler

    public init(label: String, dimensions: [(String, String)] = []) {
        handler = MetricsSystem.factory.makeRecorder(label: label, dimensions: dimensions, aggregate: false)
    }

    public func record<DataType: BinaryFloatingPoint>(_ value: DataType) { handler.record(Double(value)) }
}

public final class Timer: Sendable {
    private let handler: any TimerHandler

    public init(label: String, dimensions: [(String, String)] = []) {
        handler = MetricsSystem.factory.makeTimer(label: label, dimensions: dimensions)
    }

    public func recordSeconds<DataType: BinaryFloatingPoint>(_ duration: DataType) {
        handler.recordNanoseconds(Int64(Double(duration) * 1e9))
    }
}
