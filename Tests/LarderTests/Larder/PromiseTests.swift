import LarderPlatform
import LarderTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct PromiseTests {
    @Test func aValueThatIsSetBeforeTheWaitIsReturned() async {
        let promise = Promise<Int?>()
        promise.set(nil)
        #expect(await promise.value() == nil)
    }

    @Test func aWaitingTaskGetsTheValue() async {
        let promise = Promise<String>()
        let waiting = Task { await promise.value() }
        for _ in 0..<50 { await Task.yield() }
        #expect(promise.set("value"))
        #expect(await waiting.value == "value")
    }

    @Test func onlyTheFirstValueIsSet() async {
        let promise = Promise<Int>()
        #expect(promise.set(1))
        #expect(!promise.set(2))
        #expect(await promise.value() == 1)
    }

    @Test func aCancellationDoesNotEndTheWait() async {
        let promise = Promise<Int>()
        let waiting = Task { await promise.value() }
        waiting.cancel()
        for _ in 0..<50 { await Task.yield() }
        promise.set(1)
        #expect(await waiting.value == 1)
    }

    /// Several tasks set the value while another one begins to wait.
    @Test func exactlyOneOfConcurrentCallersSetsTheValue() async {
        for _ in 0..<2_000 {
            let promise = Promise<Int>()
            async let value = promise.value()
            let setters = await withTaskGroup(of: Int?.self) { group in
                for number in 0..<4 { group.addTask { promise.set(number) ? number : nil } }
                return await group.reduce(into: []) { $0 += [$1].compactMap(\.self) }
            }
            #expect(setters == [await value])
        }
    }

    @Test func theValueIsReleasedWithThePromise() async {
        final class Model: Sendable {}
        weak var model: Model?
        do {
            let promise = Promise<Model>()
            do {
                let made = Model()
                model = made
                promise.set(made)
            }
            #expect(await promise.value() === model)
        }
        #expect(model == nil)
    }

    @Test func aDelayedTaskRunsUnlessItIsCancelled() async {
        let promise = Promise<Int>()
        let cancelled = Task.delayed(milliseconds: 60_000) { promise.set(1) }
        cancelled.cancel()
        await cancelled.value
        await Task.delayed(milliseconds: 1) { promise.set(2) }.value
        #expect(await promise.value() == 2)
    }
}
