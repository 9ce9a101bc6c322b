/// Where larderd answers otherwise than Redis does, on purpose, with a command that shows it: docs/Protocol.md lists them,
/// and a test sends them to both.
package struct DeliberateDifference: Sendable, CustomStringConvertible {
    package let subject: String
    /// What is sent first, on the same connection.
    package let before: [String]
    /// The command that shows it, as ``ConformanceStep`` reads it.
    package let example: String
    /// How Redis' reply begins.
    package let redis: String
    /// How larderd's reply begins.
    package let larder: String
    package let reason: String
    package var description: String { subject }

    init(_ subject: String, before: [String] = [], _ example: String, redis: String, larder: String, _ reason: String) {
        self.subject = subject
        self.before = before
        self.example = example
        self.redis = redis
        self.larder = larder
        self.reason = reason
    }
}

package let deliberateDifferences: [DeliberateDifference] = [
    DeliberateDifference(
        "SELECT takes names", "SELECT books", redis: "-ERR value is not an integer or out of range", larder: "+OK",
        "Databases have names; 0 to 15 are names like others. What is neither a number nor a name gets an error that "
            + "tells the rule."),
    DeliberateDifference(
        "SCAN refuses a cursor that it did not give", "SCAN 12345", redis: "*2", larder: "-ERR unknown cursor 12345",
        "Cursors stand for the last key seen, in a bounded table. To go on from nowhere would leave out keys silently."),
    DeliberateDifference(
        "patterns of several stars match the empty key", before: ["SET \"\" v"], "KEYS **", redis: "*0",
        larder: "*1\r\n$0", "`*` stands for any bytes, none included, as it does in Redis for every other key."),
    DeliberateDifference(
        "CLIENT SETINFO", "CLIENT SETINFO LIB-NAME x", redis: "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.",
        larder: "+OK", "Client libraries send it to every server of version 7.2 or later and some to all."),
    DeliberateDifference(
        "keys have a longest length", "GET <65537 bytes>", redis: "$-1", larder: "-ERR key is 65537 bytes long",
        "65,536 bytes. LevelDB compares keys at every step of every read."),
    DeliberateDifference(
        "SET has POLICY and CODEC", "SET k v POLICY high", redis: "-ERR syntax error", larder: "+OK",
        "Entries may have a policy of their own, and say how their bytes are encoded."),
    DeliberateDifference(
        "commands of other types are unknown", "LPUSH k v", redis: ":1", larder: "-ERR unknown command 'LPUSH'",
        "Only strings exist."),
    DeliberateDifference(
        "CLIENT and COMMAND have fewer subcommands", "CLIENT LIST", redis: "$",
        larder: "-ERR unknown subcommand 'LIST'",
        "Those that client libraries send when they connect are there."),
    DeliberateDifference(
        "SHUTDOWN has no ABORT", "SHUTDOWN ABORT", redis: "-ERR No shutdown in progress.", larder: "-ERR syntax error",
        "A stop takes at most a few seconds and is not taken back."),
    DeliberateDifference(
        "COMMAND DOCS has other fields", "COMMAND DOCS ping", redis: "*2\r\n$4\r\nping\r\n*",
        larder: "*2\r\n$4\r\nping\r\n*14",
        "`syntax` and `reply` tell as text what Redis tells in a structure; `arguments` has the syntax once more, for "
            + "the help of redis-cli."),
    DeliberateDifference(
        "what EXEC publishes to its own connection stands behind the reply",
        before: ["HELLO 3", "SUBSCRIBE x", "MULTI", "PUBLISH x y"], "EXEC", redis: "*1\r\n>3", larder: "*1\r\n:1",
        "A push within the reply breaks clients. Messages go out once the transaction is applied."),
]
