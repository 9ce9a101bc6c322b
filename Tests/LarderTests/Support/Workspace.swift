import Larder
import LarderTestSupport
import Testing

/// A separate larder for one test. The test controls its time, and nothing happens in the background.
final class Workspace {
    let time = ManualTimeSource()
    private let temporary: TemporaryDirectory

    init() throws { temporary = try TemporaryDirectory(inMemory: true) }

    /// The larder's directory, which the first cache creates.
    var directory: String { temporary.path + "/larder" }

    /// Options for a larder whose time the test controls.
    func options(_ change: (inout CacheOptions) -> Void = { _ in }) -> CacheOptions {
        var options = CacheOptions()
        options.timeSource = time
        options.backgroundMaintenance = false
        change(&options)
        return options
    }

    func cache(
        _ name: String = "books", policy: UpdatePolicy? = .high, _ change: (inout CacheOptions) -> Void = { _ in }
    ) throws -> Cache {
        guard let policy else { return try Cache(named: name, directory: directory, options: options(change)) }
        return try Cache(named: name, policy: policy, directory: directory, options: options(change))
    }
}

/// Runs `body` and records an issue unless it throws a `LarderError` of this kind.
/// - Returns: the error's whole text.
@discardableResult
func expectError(
    _ code: LarderError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) -> String {
    do {
        try body()
        Issue.record("nothing was thrown, \(code) was expected", sourceLocation: sourceLocation)
        return ""
    } catch let error as LarderError {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        return error.description
    } catch {
        Issue.record("\(error) was thrown, \(code) was expected", sourceLocation: sourceLocation)
        return ""
    }
}

extension CacheReading {
    /// Returns the number of stored entries, including expired ones that have not been removed yet.
    func storedCount() throws -> Int {
        try entries(of: String.self, EntryOptions(includingExpired: true)).map { _ in () }.count
    }
}
