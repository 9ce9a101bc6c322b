import LarderPlatform

/// Collects a fixed number of results, for a thread that waits for all of them.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
package final class OutboxAnswers<Answer: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private let isComplete = Condition()
    private var answers: [Answer?]
    private var missing: Int

    package init(_ count: Int) {
        answers = Array(repeating: nil, count: count)
        missing = count
    }

    package func set(_ position: Int, _ answer: Answer) {
        lock.withLock {
            answers[position] = .some(answer)
            missing -= 1
            if missing == 0 { isComplete.signal() }
        }
    }

    package func wait() -> [Answer] {
        lock.withLock {
            while missing > 0 { isComplete.wait(lock) }
            return answers.compactMap { $0 }
        }
    }
}
