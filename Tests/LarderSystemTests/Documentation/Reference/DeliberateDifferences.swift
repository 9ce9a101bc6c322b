/// A deliberate difference between larderd and Redis, with a command that shows it. docs/Protocol.md lists the
/// differences, and a test sends the commands to both servers.
struct DeliberateDifference: Sendable, CustomStringConvertible {
    let subject: String
    /// The commands to send before the example, on the same connection.
    let before: [String]
    /// The command that shows the difference, in the syntax of ``ConformanceStep``.
    let example: String
    /// The beginning of Redis' reply.
    let redis: String
    /// The beginning of larderd's reply.
    let larder: String
    let reason: String
    var description: String { subject }

    init(_ subject: String, before: [String] = [], _ example: String, redis: String, larder: String, _ reason: String) {
        self.subject = subject
        self.before = before
        self.example = example
        self.redis = redis
        self.larder = larder
        self.reason = reason
    }
}

let deliberateDifferences: [DeliberateDifference] = [
    DeliberateDifference(
        "SELECT takes names", "SELECT books", redis: "-ERR value is not an integer or out of range", larder: "+OK",
        "Databases have names; 0 to 15 are names like others."),
    DeliberateDifference(
        "COPY and MOVE take names", before: ["SET k v"], "MOVE k books",
        redis: "-ERR value is not an integer or out of range", larder: ":1", "Like SELECT."),
    DeliberateDifference(
        "SWAPDB takes names, and is limited in size", "SWAPDB books 0", redis: "-ERR invalid first DB index",
        larder: "+OK",
        "All entries of both databases are one commit unit."),
    DeliberateDifference(
        "OBJECT ENCODING depends only on the bytes", before: ["SET k abc", "APPEND k def"], "OBJECT ENCODING k",
        redis: "$3\r\nraw", larder: "$6\r\nembstr",
        "It reports how Redis keeps a value that was stored by SET."),
    DeliberateDifference(
        "MEMORY USAGE reports Larder's memory use", before: ["SET k v"], "MEMORY USAGE k", redis: ":", larder: ":32",
        "The size of the entry in memory: its value, its key, a header and 24 bytes of overhead."),
    DeliberateDifference(
        "MEMORY DOCTOR and STATS report Larder's memory use", "MEMORY DOCTOR", redis: "$",
        larder: "$9", "They describe Larder's memory, which is divided differently."),
    DeliberateDifference(
        "RESTORE takes strings only",
        "RESTORE k 0 \"\\x01\\x01\\x01\\x61\\x0a\\x00\\xf5\\xb0\\x52\\x93\\x8d\\xc0\\xe4\\x62\"",
        redis: "+OK", larder: "-ERR Bad data format", "Only strings exist. The payload is that of a list."),
    DeliberateDifference(
        "SCAN refuses a cursor that it did not return", "SCAN 12345", redis: "*2", larder: "-ERR unknown cursor 12345",
        "Continuing from an unknown cursor would skip keys silently."),
    DeliberateDifference(
        "patterns of several stars match the empty key", before: ["SET \"\" v"], "KEYS **", redis: "*0",
        larder: "*1\r\n$0", "In Redis, such patterns match every key except the empty one."),
    DeliberateDifference(
        "CLIENT SETINFO", "CLIENT SETINFO LIB-NAME x", redis: "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.",
        larder: "+OK", "Some client libraries send it to every server, whatever its version."),
    DeliberateDifference(
        "keys have a maximum length", "GET <65537 bytes>", redis: "$-1", larder: "-ERR key is 65537 bytes long",
        "LevelDB compares keys at every step of a read."),
    DeliberateDifference(
        "SET has POLICY and CODEC", "SET k v POLICY high", redis: "-ERR syntax error", larder: "+OK",
        "Entries can have their own policy, and record the encoding of their bytes."),
    DeliberateDifference(
        "SET has IFEQ, IFNE, IFDEQ and IFDNE", "SET k v IFEQ v", redis: "-ERR syntax error", larder: "$-1",
        "Larder has them from Redis 8.4, and also DELEX, DIGEST and MSETEX; INCREX is from Redis 8.8."),
    DeliberateDifference(
        "READONLY and READWRITE", "READONLY", redis: "-ERR This instance has cluster support disabled", larder: "+OK",
        "Clients of clusters send them, and CLIENT CAPA, to every server."),
    DeliberateDifference(
        "INCRBYFLOAT is limited to the range of a double", before: ["SET k 1.7e308"], "INCRBYFLOAT k 1.7e308",
        redis: "$309\r\n", larder: "-ERR increment would produce NaN or Infinity",
        "Clients and JSON read numbers as doubles."),
    DeliberateDifference(
        "commands that store other types are unknown", "LPUSH k v", redis: ":1", larder: "-ERR unknown command 'LPUSH'",
        "Only strings exist."),
    DeliberateDifference(
        "there are no modules and no other nodes", "MODULE LIST", redis: "*0",
        larder: "-ERR unknown command 'MODULE'",
        "CLUSTER, LOLWUT, MODULE and REPLICAOF are unknown commands: Larder is a cache for one machine."
    ),
    DeliberateDifference(
        "users are those of the system", "ACL SETUSER bob on", redis: "+OK",
        larder: "-ERR users are those of the system, and commands cannot change their rights",
        "Options give rights to users and groups of the system. A refusal names the user and the database."),
    DeliberateDifference(
        "scripts work on single keys", "EVAL \"return redis.call('flushall')\" 0", redis: "+OK",
        larder: "-ERR This Redis command is not allowed from script (it works on more than single keys)",
        "PURGE, FETCH and RELEASE are not allowed either. KEYS, SCAN, DBSIZE and RANDOMKEY work outside transactions, "
            + "but do not see the script's changes."),
    DeliberateDifference(
        "scripts have neither struct nor cmsgpack", "EVAL \"return struct.pack('b',65)\" 0", redis: "$1",
        larder: "-ERR user_script:1: Script attempted to access nonexistent global variable 'struct'",
        "Debian does not have these libraries. cjson and bit are there."),
    DeliberateDifference(
        "there is no debugger for scripts", "SCRIPT DEBUG YES", redis: "+OK",
        larder: "-ERR Larder has no script debugger", "SCRIPT DEBUG NO is accepted."),
    DeliberateDifference(
        "CLIENT NO-TOUCH", "CLIENT NO-TOUCH ON", redis: "-ERR unknown subcommand 'NO-TOUCH'. Try CLIENT HELP.",
        larder: "+OK", "Accepted, without effect."),
    DeliberateDifference(
        "HELP of commands with subcommands", "CONFIG HELP", redis: "*11", larder: "*11\r\n+CONFIG <subcommand>",
        "Generated from the command table."),
    DeliberateDifference(
        "DEBUG", "DEBUG SLEEP 0", redis: "-ERR DEBUG command not allowed. If the enable-debug-command",
        larder: "-ERR DEBUG command not allowed: start larderd with --enable-debug",
        "If allowed, DEBUG SLEEP blocks only its own connection."),
    DeliberateDifference(
        "LATENCY DOCTOR", "LATENCY DOCTOR", redis: "$288", larder: "$94", "The text is Larder's own."),
    DeliberateDifference(
        "some settings cannot be changed", "CONFIG SET appendfsync always", redis: "+OK",
        larder: "-ERR CONFIG SET failed (possibly related to argument 'appendfsync') - can't set immutable config",
        "Durability, directory, socket and the like are set at startup. Setting the current value is not an error."),
    DeliberateDifference(
        "notes in key specifications", "COMMAND INFO set", redis: "*1\r\n*10\r\n$3\r\nset\r\n:-3",
        larder: "*1\r\n*10\r\n$3\r\nset\r\n:-3", "The notes of SET, GETEX and BITFIELD have Larder's own texts."),
    DeliberateDifference(
        "SHUTDOWN has no ABORT", "SHUTDOWN ABORT", redis: "-ERR No shutdown in progress.", larder: "-ERR syntax error",
        "A stop takes at most a few seconds."),
    DeliberateDifference(
        "COMMAND DOCS has other fields", "COMMAND DOCS ping", redis: "*2\r\n$4\r\nping\r\n*",
        larder: "*2\r\n$4\r\nping\r\n*14",
        "`syntax` and `reply` are text; `arguments` has the syntax again, for the help of redis-cli."),
    DeliberateDifference(
        "messages that EXEC publishes to its own connection follow the reply",
        before: ["HELLO 3", "SUBSCRIBE x", "MULTI", "PUBLISH x y"], "EXEC", redis: "*1\r\n>3", larder: "*1\r\n:1",
        "A push within the reply breaks clients."),
    DeliberateDifference(
        "notifications of a connection's own writes follow their replies",
        before: ["HELLO 3", "CONFIG SET notify-keyspace-events KEA", "PSUBSCRIBE __key*"], "SET k v", redis: ">4",
        larder: "+OK", "Notifications follow the commit."),
]
