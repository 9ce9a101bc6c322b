import LarderPlatform

/// Runs `body` on `count` threads at once, and waits for all.
package func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let threads = (0..<count).map { index in WorkThread(name: "test-\(index)") { body(index) } }
    for thread in threads { thread.join() }
}

/// Runs a blocking body on its own thread, so that it does not block other tasks.
package func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withUnsafeThrowingContinuation { continuation in
        _ = WorkThread(name: "test") { continuation.resume(with: Swift.Result { try body() }) }
    }
}
