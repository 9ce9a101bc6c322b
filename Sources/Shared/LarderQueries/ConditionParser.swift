import LarderJSONCoding

extension QueryPath {
    /// A path as a word of a query, also if a field is named like another word.
    package static func word(_ path: String) -> String {
        let others = ["NOT", "(", "DESC", "COUNT", "SUM", "MIN", "MAX"]
        return (QueryWords.clauses + QueryWords.misplaced + others).contains(path.uppercased()) || path.contains(",")
            ? "$." + path : path
    }
}

extension QueryWords {
    /// The maximum depth of parentheses and NOT.
    private static let depthMax = 100
    /// The words that follow a condition.
    static let clauses = ["WHERE", "SORT", "SKIP", "LIMIT", "AFTER", "SCAN"]
    private static let operators = [
        "=", "!=", "<", "<=", ">", ">=", "BETWEEN", "IN", "NOT IN", "ALL", "PREFIX", "LIKE", "EXISTS", "MISSING",
        "NEAR", "WITHIN",
    ]

    private static let mistaken = [
        "<>": "!=", "=!": "!=", "=>": ">=", "=<": "<=", "==": "=", "===": "=", "=~": "LIKE",
        "IS": "= null, MISSING, or EXISTS AND … != null",
    ]

    /// Reads a condition. AND binds tighter than OR.
    mutating func condition(depth: Int = 0) throws(QueryError) -> QueryCondition {
        var branches = [try conjunction(depth)]
        while take("OR") { branches.append(try conjunction(depth)) }
        return branches.count == 1 ? branches[0] : .or(branches)
    }

    private mutating func conjunction(_ depth: Int) throws(QueryError) -> QueryCondition {
        var parts = [try factor(depth)]
        while take("AND") { parts.append(try factor(depth)) }
        return parts.count == 1 ? parts[0] : .and(parts)
    }

    private mutating func factor(_ depth: Int) throws(QueryError) -> QueryCondition {
        guard depth < Self.depthMax else {
            throw QueryError("the condition has more than \(Self.depthMax) levels of parentheses and NOT")
        }
        if take("NOT") { return .not(try factor(depth + 1)) }
        if take("(") {
            let condition = try condition(depth: depth + 1)
            guard take(")") else { throw unexpected("AND, OR or )") }
            return condition
        }
        let path = try path()
        let word = keyword
        guard Self.operators.contains(word) || word == "NOT" else {
            guard let meant = Self.mistaken[word] else {
                throw unexpected("an operator", Self.operators)
            }
            throw QueryError(unexpected("an operator").text + "; did you mean \(meant)?")
        }
        _ = take(word)
        if word == "!=" { return .not(.test(path, .equal(try operand()))) }
        if word == "NOT" {
            guard take("IN") else {
                throw QueryError(unexpected("IN").text + "; NOT precedes other conditions: NOT \(path.text) …")
            }
            return .not(.test(path, .oneOf(try operands("IN"))))
        }
        return .test(path, try test(word))
    }

    private mutating func test(_ word: String) throws(QueryError) -> QueryTest {
        switch word {
        case "=": return .equal(try operand())
        case "<", "<=": return .range(lower: nil, upper: QueryBound(try operand().value, isInclusive: word == "<="))
        case ">", ">=": return .range(lower: QueryBound(try operand().value, isInclusive: word == ">="), upper: nil)
        case "BETWEEN":
            let lower = QueryBound(try operand().value, isInclusive: true)
            if take("AND") { throw QueryError("BETWEEN takes two values without AND; the text 'AND' is STR AND") }
            return .range(lower: lower, upper: QueryBound(try operand().value, isInclusive: true))
        case "IN": return .oneOf(try operands("IN"))
        case "ALL": return .all(try operands("ALL"))
        case "PREFIX": return .prefix(try next("the text after PREFIX"))
        case "LIKE":
            let pattern = try next("the pattern after LIKE")
            guard pattern.count <= LikePattern.bytesMax else {
                throw QueryError("a pattern of LIKE has at most \(LikePattern.bytesMax) bytes")
            }
            return .like(LikePattern(pattern))
        case "EXISTS": return .exists
        case "MISSING": return .missing
        case "NEAR":
            let center = try place()
            let radius = try double("the radius")
            let units = ["M": 1, "KM": 1000, "MI": 1609.34]
            guard let unit = units[keyword] else { throw unexpected("m, km or mi") }
            _ = take(keyword)
            guard radius >= 0 else { throw QueryError("the radius must not be negative") }
            return .near(center, meters: radius * unit)
        default:
            let corner = try place()
            return .within(QueryBox(corner, try place()))
        }
    }

    private mutating func place() throws(QueryError) -> QueryPlace {
        let (longitude, latitude) = (try double("the longitude"), try double("the latitude"))
        guard let place = QueryPlace(longitude: longitude, latitude: latitude) else {
            throw QueryError("a longitude is between -180 and 180, and a latitude between -90 and 90")
        }
        return place
    }

    private mutating func operands(_ word: String) throws(QueryError) -> QueryOperands {
        let count = try count("the number of values after \(word), as in \(word) 2 x y,")
        guard count > 0 else { throw QueryError("\(word) needs at least one value") }
        var operands: [QueryOperand] = []
        while operands.count < count { operands.append(try operand()) }
        return QueryOperands(operands)
    }

    /// Reads a value: `STR x` and `JSON x`, or a word that is JSON if it is a number, true, false or null.
    mutating func operand() throws(QueryError) -> QueryOperand {
        let word = try next("a value")
        if word.elementsEqual("STR".utf8) { return .scalar(.text(try next("the text after STR"))) }
        if word.elementsEqual("JSON".utf8) {
            let text = try next("the JSON after JSON")
            guard let operand = Self.json(text) else {
                throw QueryError("'\(Self.shown(text))' after JSON is not JSON")
            }
            return operand
        }
        let isScalar = ["null", "true", "false"].contains { word.elementsEqual($0.utf8) }
        let isNumber = word.first.map { $0 == UInt8(ascii: "-") || $0 &- 0x30 < 10 } ?? false
        let isValue = (isScalar || isNumber) && word.withUnsafeBytes { JSONOutline.isValue($0) }
        return isValue ? Self.json(word) ?? .scalar(.text(word)) : .scalar(.text(word))
    }

    private static func json(_ text: [UInt8]) -> QueryOperand? {
        text.withUnsafeBytes { bytes in
            guard let document = JSONDocument(bytes) else { return nil }
            return QueryOperand(document, JSONDocument.root)
        }
    }
}
