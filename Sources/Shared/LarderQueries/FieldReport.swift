import LarderJSONCoding
import LarderVocabulary

/// Finds out which fields of a query no examined entry has: they are probably misspelt.
package struct FieldReport {
    private struct Field {
        let path: QueryPath
        /// The number of names of the path that some entry has, and the names that the first such entries have there.
        var depth = 0
        var names: Set<String> = []
    }

    /// The number of entries whose names are remembered.
    private static let namedMax = 100

    /// The paths that no entry has had so far.
    private var absent: [Field]
    private var examined = 0

    package init() { absent = [] }

    /// - Parameter indexes: the indexes of the database, whose fields are taken for existing.
    package init(_ query: Query, _ indexes: [IndexDefinition] = []) {
        self.init()
        for path in query.paths where path.root == .document {
            let isIndexed = indexes.contains { $0.order.parts.contains { $0.path == path } }
            if !isIndexed { absent.append(Field(path: path)) }
        }
    }

    /// Records an examined entry. Cheap as soon as each path was found once.
    package mutating func examine(_ document: borrowing JSONDocument) {
        examined += 1
        guard !absent.isEmpty else { return }
        var index = 0
        while index < absent.count {
            switch absent[index].path.place.find(in: document) {
            case .value:
                absent.remove(at: index)
                continue
            case .missing(let object, let step) where examined <= Self.namedMax && step >= absent[index].depth:
                if step > absent[index].depth { absent[index].names = [] }
                absent[index].depth = step
                for member in document.members(object) { absent[index].names.insert(document.string(member)) }
            case .missing, .blocked: break
            }
            index += 1
        }
    }

    /// Which entries were examined.
    package enum Scope {
        case all, some
    }

    /// A sentence for each field that no examined entry has.
    package func sentences(of scope: Scope) -> [String] {
        guard examined > 0 else { return [] }
        let entries = scope == .all ? "no entry" : "no examined entry"
        return absent.map { field in
            let near = Suggestion.nearest(to: field.path.place.steps[field.depth], among: field.names.sorted())
            return "\(entries) has the field '\(field.path.text)'" + (near.map { "; did you mean '\($0)'?" } ?? "")
        }
    }
}
