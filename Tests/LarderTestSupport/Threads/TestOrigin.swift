import LarderPlatform

/// An origin for tests of fetching. Each call returns its number. After ``hold()``, calls wait until ``letGo()`` is
/// called. While ``fails`` is true, calls fail.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
package final class TestOrigin: @unchecked Sendable {
    package struct Failure: Error, Hashable { package init() {} }

    private let lock = Lock()
    private var state = (calls: 0, cancellations: 0, running: 0, isHeld: false, fails: false)

    package init() {}

    package var calls: Int { lock.withLock { state.calls } }
    /// The number of calls that ended because their task was cancelled.
    package var cancellations: Int { lock.withLock { state.cancellations } }
    package var running: Int { lock.withLock { state.running } }

    package func hold() { lock.withLock { state.isHeld = true } }
    package func letGo() { lock.withLock { state.isHeld = false } }
    package var fails: Bool {
        get { lock.withLock { state.fails } }
        set { lock.withLock { state.fails = newValue } }
    }

    /// Returns the number of the call, counted from 1.
    package func value() async throws -> Int {
        let number = lock.withLock {
            state.calls += 1
            state.running += 1
            return state.calls
        }
        defer { lock.withLock { state.running -= 1 } }
        while lock.withLock({ state.isHeld }) {
            if Task.isCancelled {
                lock.withLock { state.cancellations += 1 }
                throw CancellationError()
            }
            try? await Task.sleep(for: .milliseconds(1))
        }
        if fails { throw Failure() }
        return number
    }

    /// Waits until there were at least this many calls.
    package func waitUntil(calls count: Int) async {
        await eventually { self.calls >= count }
    }
}

/// Waits until a condition holds, such as an effect of another task. Returns early if the task is cancelled, as it is
/// when the test's time limit is reached. If the wait takes long, the caller's location is printed.
package func eventually(
    _ isSo: () async throws -> Bool, fileID: String = #fileID, line: Int = #line
) async rethrows {
    var turns = 0
    while try await !isSo(), !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(1))
        turns += 1
        if turns == 20_000 { print("\(fileID):\(line): still waiting") }
    }
}
