import Foundation
import Larder
import LarderTestSupport
import Testing

/// Tests references between models of one database.
@Suite(.timeLimit(.minutes(2))) struct ReferenceTests {
    private struct Post: Codable, Equatable, Sendable {
        var title: String
    }

    private struct Comment: Codable, Equatable, Sendable {
        var text: String
        var post: Reference<Post>
        var answered: Reference<Comment>?
        var others: [Reference<Post>] = []
    }

    private let workspace: Workspace
    private let cache: Cache

    init() throws {
        workspace = try Workspace()
        cache = try workspace.cache()
        try cache.set(Post(title: "A"), forKey: "p:1")
        try cache.set(Post(title: "B"), forKey: "p:2", policy: .seconds(5))
        for (number, post) in ["p:1", "p:2", "p:1", "p:9"].enumerated() {
            let comment = Comment(
                text: "\(number)", post: Reference(post), answered: number == 0 ? nil : Reference("c:\(number - 1)"),
                others: number == 3 ? [Reference("p:2"), Reference(""), Reference("p:1")] : [])
            try cache.set(comment, forKey: "c:\(number)", tags: [post])
        }
    }

    private var comments: ModelQuery<Comment, Cache> {
        cache.query(Comment.self).where(keyPrefix: "c:").sorted(by: .key)
    }

    private func text(_ key: String) throws -> String? {
        try cache.bytes(forKey: key).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func aReferenceIsStoredAsItsKey() throws {
        #expect(try text("c:0") == #"{"text":"0","post":"p:1","others":[]}"#)
        let comment = try #require(try cache.value(Comment.self, forKey: "c:0"))
        #expect(comment.post.key == "p:1" && comment.post.model == nil)
        #expect(try comments.where(\.post, Reference("p:1")).keys() == ["c:0", "c:2"])
    }

    @Test("a condition on the key of a reference is refused, because the reference is stored as one value")
    func keysOfReferencesAreNotFields() throws {
        for query in [
            comments.where(\.post.key, "p:1"), cache.query(#Predicate<Comment> { $0.post.key == "p:1" }),
            cache.query(#Predicate<Comment> { $0.post.key != "p:1" }),
        ] {
            let text = expectError(.invalidArgument) { _ = try query.keys() }
            #expect(text.contains(#"'post' is stored as one value: use where(\.post, Reference("…"))"#), "\(text)")
        }
        let post = Reference<Post>("p:1")
        let equal = cache.query(#Predicate<Comment> { $0.post == post }).where(keyPrefix: "c:")
        #expect(try equal.keys() == ["c:0", "c:2"])
        let other = try workspace.cache("other")
        try other.declareIndexes([Index(\Comment.post.key)])
        let text = expectError(.encoding) { try other.set(Comment(text: "", post: post), forKey: "c") }
        #expect(text.contains("'post' is stored as one value: index that property"), "\(text)")
    }

    @Test func asynchronousQueriesLoadReferencedModels() async throws {
        let found = try await comments.including(\.post).values()
        #expect(found.map(\.post.model?.title) == ["A", "B", "A", nil])
    }

    @Test func queriesLoadReferencedModels() throws {
        let query = comments.including(\.post).including(\.answered).including(\.others)
        for found in [try query.values(), try query.page().values] {
            #expect(found.map(\.post.model?.title) == ["A", "B", "A", nil])
            #expect(found.map(\.answered?.model?.text) == [nil, "0", "1", "2"])
            #expect(found[3].others.map(\.model?.title) == ["B", nil, "A"])
            // Only one level is loaded.
            #expect(found[2].answered?.model?.post.model == nil)
        }
        #expect(try comments.values().allSatisfy { $0.post.model == nil })
        workspace.time.advance(milliseconds: 6_000)
        #expect(try query.values().map(\.post.model?.title) == ["A", nil, "A", nil])
        // Storing such a model stores only the key.
        let first = try query.values()[0]
        try cache.set(first, forKey: "c:0")
        #expect(try text("c:0") == #"{"text":"0","post":"p:1","others":[]}"#)
        try cache.withSnapshot { snapshot in
            try cache.remove("p:1")
            let read = snapshot.query(Comment.self).where(keyPrefix: "c:").including(\.post).sorted(by: .key)
            #expect(try read.values()[0].post.model == Post(title: "A"))
        }
        #expect(try query.values().allSatisfy { $0.post.model == nil })
    }

    @Test func aReferenceToAnotherTypeIsAnError() throws {
        try cache.set([1, 2], forKey: "p:9")
        expectError(.decoding) { _ = try comments.including(\.post).values() }
        #expect(try comments.including(\.post).filter { $0.text != "3" }.values().count == 3)
    }

    @Test("purging the tag of a post removes its comments") func removalsCascadeByTags() throws {
        try cache.removeAll(tagged: "p:1")
        try cache.remove("p:1")
        #expect(try comments.keys() == ["c:1", "c:3"])
    }
}
