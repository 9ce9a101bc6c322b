import LarderEngine
import Testing

@testable import LarderCrashMachine

/// Tests of the outcomes that are accepted after a simulated accident, for policies, functions and origins.
@Suite struct AccidentJudgeTests {
    private func isPromised(_ value: String, of fact: Fact, _ history: History, cut: Int) -> Bool {
        var found = FoundState(now: 0...0, latest: 0)
        found.facts[fact] = value
        let judge = Judge(history: history, durability: .os)
        if case .promised = judge.judge(found, cut: cut, power: true) { return true }
        return false
    }

    @Test(
        "the checker requires acknowledged facts after a crash, and permits unacknowledged ones",
        arguments: [Fact.functions, .origin("cache")])
    func acknowledgedFactsMustExistAfterACrash(_ fact: Fact) {
        let history = History(connections: 1, policy: .never)
        let first = history.send(connection: History.control, at: 10, [:], "first")
        history.note(fact, "a", by: first)
        history.answer(first, done: true, at: 20)
        let refused = history.send(connection: History.control, at: 30, [:], "refused")
        history.note(fact, "b", by: refused)
        history.answer(refused, done: false, at: 40)
        let open = history.send(connection: History.control, at: 50, [:], "open")
        history.note(fact, "c", by: open)
        let expected: [(cut: Int, values: Set<String>)] = [
            (5, [Fact.none]), (15, [Fact.none, "a"]), (25, ["a"]), (35, ["a", "b"]), (45, ["a"]), (55, ["a", "c"]),
        ]
        for (cut, values) in expected {
            let promised = [Fact.none, "a", "b", "c"].filter { isPromised($0, of: fact, history, cut: cut) }
            #expect(Set(promised) == values, "at \(cut)")
        }
    }

    @Test("the checker rejects a truncated function library") func theCheckerRejectsATruncatedLibrary() {
        let text = Array(FunctionVersion("lib0", 7).text.utf8)
        #expect(FunctionVersion(text)?.description == "lib0:7")
        for count in text.indices { #expect(FunctionVersion(Array(text[..<count])) == nil) }
    }
}
