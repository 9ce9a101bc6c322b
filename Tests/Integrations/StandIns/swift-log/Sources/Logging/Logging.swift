// A stand-in for swift-log: only what Larder's integrations and their test use.

public struct Logger: Sendable {
    private var handler: any LogHandler
    public let label: String

    public init(label: String, factory: (String) -> any LogHandler) {
        self.label = label
        handler = factory(label)
    }

    public func log(
        level: Logger.Level, _ message: @autoclosure () -> Logger.Message,
        metadata: @autoclosure () -> Logger.Metadata? = nil, source: @autoclosure () -> String? = nil,
        file: String = #fileID, function: String = #function, line: UInt = #line
    ) {
        guard handler.logLevel <= level else { return }
        handler.log(
            level: level, message: message(), metadata: metadata(), source: source() ?? "", file: file,
            function: function, line: line)
    }

    public typealias Metadata = [String: MetadataValue]

    public enum MetadataValue: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
        case string(String)

        public init(stringLiteral value: String) { self = .string(value) }
    }

    public enum Level: String, Codable, CaseIterable, Sendable, Comparable {
        case trace, debug, info, notice, warning, error, critical

        public static func < (left: Level, right: Level) -> Bool {
            (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
        }
    }

    public struct Message: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
        CustomStringConvertible
    {
        public let description: String

        public init(stringLiteral value: String) { description = value }
    }
}

public protocol LogHandler: Sendable {
    var logLevel: Logger.Level { get set }
    func log(
        level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String,
        function: String, line: UInt)
}
