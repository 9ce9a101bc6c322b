/// Commands for entries that contain JSON: EDIT, those of RedisJSON, and queries.
extension CommandMetadata {
    static let documents: [CommandMetadata] = [
        .edit, .jsonGet, .jsonMget, .jsonSet, .jsonMset, .jsonMerge, .jsonDel, .jsonForget, .jsonClear, .jsonType,
        .jsonNumincrby, .jsonNummultby, .jsonToggle, .jsonStrappend, .jsonStrlen, .jsonArrappend, .jsonArrindex,
        .jsonArrinsert, .jsonArrlen, .jsonArrpop, .jsonArrtrim, .jsonObjkeys, .jsonObjlen, .jsonResp,
        .query, .explain, .index,
    ]

    package static let edit = CommandMetadata(
        "edit", arity: -4, [.write, .denyOOM, .creates], keys: .one, group: .json, since: "0.1.0",
        complexity: "O(N*M) with N the value's length and M the number of steps",
        syntax: "key step [step ...] [RETURN path]",
        summary: "Changes fields of a JSON value, all steps or none. Steps: SET path json, DEL path, INCR "
            + "path number, APPEND path json, ADDUNIQUE, REMOVE or PUSH path json [json ...]. The entry "
            + "keeps its deadline rule and gets a new storage time.",
        reply: "OK; with RETURN, the JSON at that path afterwards, or null", tag: .setKeeping)

    package static let query = CommandMetadata(
        "query", arity: -1, [.readonly], group: .json, since: "0.1.0",
        complexity: "O(N) with N the examined entries",
        syntax: "[LIVE [POSITIONS]] [KEYS | COUNT | SELECT n path [path ...] | GROUP path [COUNT] [SUM path] "
            + "[MIN path] [MAX path]] [WHERE condition] [SORT path [DESC] [path [DESC] ...]] [SKIP n] [LIMIT n] "
            + "[AFTER cursor] [SCAN] | STOP id",
        summary: "Finds fresh JSON entries by their fields. A condition is: path op value, NOT c, ( c ), c AND "
            + "c, c OR c. op: = != < <= > >=, BETWEEN a b, IN n v [v ...], ALL n v [v ...], PREFIX p, "
            + "LIKE glob, EXISTS, MISSING, NEAR lon lat radius m|km|mi, WITHIN lon lat lon lat. NEAR sorts by the distance "
            + "unless SORT is given.",
        reply: "array of the cursor of the next page or null, and an array of [key, text], of keys, or of [key, [json "
            + "or null, ...]]; with COUNT an integer; with GROUP an array of [json, value ...]; with LIVE an "
            + "array of an id and the rows")

    package static let explain = CommandMetadata(
        "explain", arity: -2, [.readonly], group: .json, since: "0.1.0",
        complexity: "O(N) with N the examined entries", syntax: "QUERY [argument ...]",
        summary: "Runs a query, and describes how instead of returning its result.", reply: "lines of text")

    package static let index = CommandMetadata(
        "index", arity: -1, [.readonly, .writesWithArguments], group: .json, since: "0.1.0",
        complexity: "O(1) to create or drop an index; O(N) with N the terms of the indexes to list them",
        syntax: "[name | CREATE name [PREFIX prefix] [GEO] ON path [DESC] [path [DESC] ...] | DROP name]",
        summary: "Lists the current database's indexes for QUERY, creates one, or drops one. Entries are listed under "
            + "the values of the paths, or with GEO under their places; PREFIX lists only keys that begin with it.",
        reply: "OK; or an array of maps of name, paths, prefix, state (building, ready, undeclared), percent, entries "
            + "and stale")

    private static let json = CommandFamily(
        "json.", keys: .one, group: .json, since: "1.0.0", complexity: "O(N) with N the value's length",
        tag: .setKeeping)
    package static let jsonGet = json.row(
        "get", -2, flags: .readonly, syntax: "key [INDENT indent] [NEWLINE newline] [SPACE space] [path ...]",
        "Returns the values of one or more paths of a JSON value.",
        reply: "bulk: the JSON; null when there is no fresh entry")
    package static let jsonMget = json.row(
        "mget", -3, flags: .readonly, syntax: "key [key ...] path",
        "Returns the values of a path of several JSON values.",
        reply: "array of bulks; null for keys without a fresh entry that is JSON", keys: .allButLast)
    package static let jsonSet = json.row(
        "set", -4, flags: [.write, .denyOOM, .creates], syntax: "key path json [NX|XX]",
        "Stores a JSON value, or sets the values of a path. The entry keeps its deadline rule and gets a new storage "
            + "time.", reply: "OK; null when nothing was set")
    package static let jsonMset = json.row(
        "mset", -4, flags: [.write, .denyOOM, .creates], since: "2.6.0", syntax: "key path json [key path json ...]",
        "Sets the values of one path in each key; skips places that do not exist.", reply: "OK", keys: .triples)
    package static let jsonMerge = json.row(
        "merge", -4, flags: [.write, .denyOOM, .creates], since: "2.6.0", syntax: "key path json",
        "Merges a JSON value into the values of a path (RFC 7396): null removes a member.",
        reply: "OK; null when nothing was changed")
    package static let jsonDel = json.row(
        "del", -2, flags: [.write], syntax: "key [path]", "Removes the values of a path, or the entry.",
        reply: "integer: the number of removed values")
    package static let jsonForget = json.row(
        "forget", -2, flags: [.write], syntax: "key [path]", "Another name of JSON.DEL.",
        reply: "integer: the number of removed values")
    package static let jsonClear = json.row(
        "clear", -2, flags: [.write], since: "2.0.0", syntax: "key [path]",
        "Empties objects and arrays, and sets numbers to 0.", reply: "integer: the number of changed values")
    package static let jsonType = json.row(
        "type", -2, flags: .readonly, syntax: "key [path]", "Returns the types of the values of a path.",
        reply: "bulk, or an array for a path with $")
    package static let jsonNumincrby = json.row(
        "numincrby", 4, flags: [.write], syntax: "key path number", "Adds a number to the numbers of a path.",
        reply: "bulk: the new number, or a JSON array for a path with $; RESP3: array of numbers")
    package static let jsonNummultby = json.row(
        "nummultby", 4, flags: [.write], syntax: "key path number", "Multiplies the numbers of a path.",
        reply: "like JSON.NUMINCRBY")
    package static let jsonToggle = json.row(
        "toggle", 3, flags: [.write], since: "2.0.0", syntax: "key path", "Negates the booleans of a path.",
        reply: "bulk true or false, or an array of 1 and 0 for a path with $")
    package static let jsonStrappend = json.row(
        "strappend", -3, flags: [.write, .denyOOM], syntax: "key [path] json", "Appends to the strings of a path.",
        reply: "integer: the new length, or an array for a path with $")
    package static let jsonStrlen = json.row(
        "strlen", -2, flags: .readonly, syntax: "key [path]", "Returns the lengths of the strings of a path in bytes.",
        reply: "integer, or an array for a path with $")
    package static let jsonArrappend = json.row(
        "arrappend", -4, flags: [.write, .denyOOM], syntax: "key path json [json ...]",
        "Appends values to the arrays of a path.", reply: "integer: the new length, or an array for a path with $")
    package static let jsonArrindex = json.row(
        "arrindex", -4, flags: .readonly, syntax: "key path json [start [stop]]",
        "Returns the index of a value in the arrays of a path.",
        reply: "integer; -1 when not found; an array for a path with $")
    package static let jsonArrinsert = json.row(
        "arrinsert", -5, flags: [.write, .denyOOM], syntax: "key path index json [json ...]",
        "Inserts values into the arrays of a path.", reply: "integer: the new length, or an array for a path with $")
    package static let jsonArrlen = json.row(
        "arrlen", -2, flags: .readonly, syntax: "key [path]", "Returns the lengths of the arrays of a path.",
        reply: "integer, or an array for a path with $")
    package static let jsonArrpop = json.row(
        "arrpop", -2, flags: [.write], syntax: "key [path [index]]",
        "Removes one element of each array of a path, by default the last, and returns it.",
        reply: "bulk: the JSON; null for an empty array; an array for a path with $")
    package static let jsonArrtrim = json.row(
        "arrtrim", 5, flags: [.write], syntax: "key path start stop",
        "Keeps only the elements from start to stop of the arrays of a path.",
        reply: "integer: the new length, or an array for a path with $")
    package static let jsonObjkeys = json.row(
        "objkeys", -2, flags: .readonly, syntax: "key [path]",
        "Returns the names of the members of the objects of a path.",
        reply: "array of bulks, or an array of these for a path with $")
    package static let jsonObjlen = json.row(
        "objlen", -2, flags: .readonly, syntax: "key [path]",
        "Returns the numbers of members of the objects of a path.", reply: "integer, or an array for a path with $")
    package static let jsonResp = json.row(
        "resp", -2, flags: .readonly, syntax: "key [path]",
        "Returns the values of a path in types of RESP: an array begins with [, an object with {.",
        reply: "the value, or an array for a path with $")
}
