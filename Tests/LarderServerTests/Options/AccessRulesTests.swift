import LarderEngine
import LarderPlatform
import Testing

@testable import LarderServer

/// Tests of the syntax of access rules, and of the rights that they grant.
@Suite struct AccessRulesTests {
    private func rules(_ text: String, _ kind: AccessRule.Kind? = .user) throws -> [AccessRule] {
        try AccessRule.parse(text, kind)
    }

    private func problem(_ text: String, _ kind: AccessRule.Kind? = .user) -> String? {
        do throws(UsageError) { _ = try AccessRule.parse(text, kind) } catch { return error.description }
        return nil
    }

    @Test func accessRulesAllowSpacesAndUpperCase() throws {
        let read = try rules("root=read, 42=WRITE@shop\troot=read 7=administer@0")
        #expect(read.map(\.shortText) == ["root=read", "42=write@shop", "7=administer@0"])
        #expect(read.map(\.number) == [0, 42, 7])
        #expect(
            try rules("user:root=read group:5=write@a.b", nil).map(\.text) == ["user:root=read", "group:5=write@a.b"])
        #expect(try rules("root=read", .group).first?.number == 0)
    }

    @Test(arguments: [
        ("", "there is no rule; an example: alice=write@shop"),
        (" , ", "there is no rule"),
        ("root", "root: there is no '='"),
        ("=read", "=read: there is no name before the '='"),
        ("rot=read", "rot=read: there is no user 'rot'; did you mean root?"),
        ("root=reed", "root=reed: LEVEL is read, write or administer, not 'reed'; did you mean read?"),
        ("root=", "root=: LEVEL is read, write or administer, not ''"),
        ("root=read@", "root=read@: '' is not a database name"),
        ("root=read@SHOP", "root=read@SHOP: 'SHOP' is not a database name"),
        ("root=read@a@b", "root=read@a@b: 'a@b' is not a database name"),
        ("4294967295=read", "4294967295=read: no user can have the number 4294967295"),
        ("99999999999=read", "99999999999=read: no user can have the number 99999999999"),
        ("-1=read", "-1=read: there is no user '-1'"),
        ("a\u{1b}[2J=read", "a\\x1b[2J=read: there is no user 'a\\x1b[2J'"),
        ("root=read,x", "x: there is no '='"),
    ])
    func errorsInRulesAreExplained(_ text: String, _ expected: String) throws {
        let said = try #require(problem(text))
        #expect(said.hasPrefix(expected), "\(said)")
    }

    @Test func aRuleWithoutUserOrGroupIsExplained() throws {
        #expect(problem("root=read", nil)?.contains("it must start with user: or group:") == true)
        #expect(problem("usr:root=read", nil)?.hasSuffix("did you mean user?") == true)
        #expect(problem("group:rot=read", nil)?.contains("there is no group 'rot'; did you mean root?") == true)
    }

    #if os(Linux)
        @Test func theUserOfAPeerIsReadFromItsSocket() throws {
            var pair: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
            defer { for descriptor in pair { close(descriptor) } }
            let peer = try #require(PeerCredentials(of: pair[0]))
            #expect(peer.user == geteuid() && peer.groups.first == getegid())
            var groups = [gid_t](repeating: 0, count: 65_536)
            let count = getgroups(Int32(groups.count), &groups)
            #expect(peer.groups.dropFirst().sorted() == groups.prefix(Int(count)).sorted())
            #expect(PeerCredentials(of: -1) == nil)
            #expect(
                User.name(of: 0) == "root" && User.number(of: "root") == 0 && User.number(of: "no such user") == nil)
        }
    #endif

    // MARK: Rights

    private func rights(_ text: String, user: uid_t, groups: [gid_t] = []) throws -> Rights {
        var rules = AccessRules()
        rules.others = try AccessRule.parse(text, nil)
        return try #require(rules.rights(of: PeerCredentials(user: user, groups: groups)))
    }

    @Test func rightsOfUserAndGroupsAreCombined() throws {
        let text = "user:7=read user:7=write@a group:5=administer@b group:6=write@a group:6=read@c"
        let own = try rights(text, user: 7)
        #expect(own.everywhere == .read && own.databases == ["a": .write])
        #expect(own.covers(.read, in: "x") && own.covers(.write, in: "a") && !own.covers(.write, in: "x"))
        #expect(own.coversSomewhere(.write) && !own.coversSomewhere(.administer))
        let member = try rights(text, user: 8, groups: [1, 6, 5])
        #expect(member.everywhere == nil && member.databases == ["a": .write, "b": .administer, "c": .read])
        #expect(try rights(text, user: 9, groups: [7]) == Rights())
    }

    @Test func withRulesUnlistedUsersHaveNoRights() throws {
        #expect(AccessRules().rights(of: nil) == nil)
        #expect(AccessRules().rights(of: PeerCredentials(user: 7, groups: [])) == nil)
        var rules = AccessRules()
        rules.users = try AccessRule.parse("7=read", .user)
        #expect(rules.rights(of: nil) == Rights())
        for user in [0, geteuid()] {
            #expect(rules.rights(of: PeerCredentials(user: user, groups: []))?.everywhere == .administer)
        }
    }

    @Test func higherRightsIncludeLowerOnes() throws {
        let few = try rights("user:7=read@a", user: 7)
        let more = try rights("user:7=read user:7=write@b", user: 7)
        #expect(more.covers(few) && !few.covers(more) && few.covers(few) && few.covers(Rights()))
    }

    @Test(
        "event channels belong to the database in their name",
        arguments: [
            ("news", EventChannel.Databases.none), ("__keyspace@shop__:k", .one("shop")),
            ("__keyevent@0__:set", .one("0")),
            ("__change@shop__", .one("shop")), ("__change@a__b__:k:l", .one("a__b")), ("__keyspace@shop", .one("shop")),
        ])
    func channelsNameDatabases(_ channel: String, _ expected: EventChannel.Databases) {
        #expect(Array(channel.utf8).withUnsafeBytes { EventChannel.databases(of: $0) } == expected)
    }

    @Test(arguments: [
        ("*", EventChannel.Databases.all), ("news.*", .none), ("__key*@shop__:*", .all), ("__keyspace@*", .all),
        ("__keyspace@shop__:*", .one("shop")), ("__keyspace@sh*p__:x", .all), ("__keyevent@0__:set", .one("0")),
        ("__change@shop__*", .all), ("__change@shop__:a?", .one("shop")), ("_\\_keyspace@0__:k", .all),
        ("[_]*", .all), ("x*", .none), ("__keyspacex*", .none),
    ])
    func patternsMayMatchEventsOfDatabases(_ pattern: String, _ expected: EventChannel.Databases) {
        #expect(Array(pattern.utf8).withUnsafeBytes { EventChannel.databases(ofPattern: $0) } == expected)
    }
}
