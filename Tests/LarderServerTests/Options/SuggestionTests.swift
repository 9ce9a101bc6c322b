import LarderEngine
import Testing

/// Tests of how similar a word must be to be suggested.
@Suite struct SuggestionTests {
    private let names = ["get", "getex", "set", "touch", "strlen", "--json", "max-subscriptions", "a", "no"]

    @Test(arguments: [
        ("gte", "get"), ("het", "get"), ("gt", "get"), ("sett", "set"), ("GEET", "get"), ("getx", "get"),
        ("tuch", "touch"),
        ("STLREN", "strlen"), ("trlen", "strlen"), ("strln", "strlen"), ("--jsn", "--json"), ("json", "--json"),
        ("max-subscribtion", "max-subscriptions"), ("max-subskribtionz", "max-subscriptions"),
    ])
    func misspelledWordsGetASuggestion(_ word: String, _ name: String) {
        #expect(Suggestion.nearest(to: word, among: names) == name)
    }

    @Test(arguments: [
        "nosuch", "nosuchverb", "get x", "get ", "x", "b", "", "--", "--v", "xy", "mo", "rtsleb", "stnlerx",
        "mux-subskribtionz",
        "max-sobskribtionzz", String(repeating: "g", count: 33),
    ])
    func unrelatedWordsGetNoSuggestion(_ word: String) {
        #expect(Suggestion.nearest(to: word, among: names) == nil)
    }

    @Test func theMostSimilarWordIsSuggested() {
        #expect(Suggestion.nearest(to: "memoy", among: ["memo", "memory"]) == "memo")
        #expect(Suggestion.nearest(to: "memry", among: ["mercy", "memory"]) == "memory")
        #expect(Suggestion.text(for: "memry", among: ["memory"]) == "; did you mean memory?")
        #expect(Suggestion.text(for: "other", among: ["memory"]) == "")
    }
}
