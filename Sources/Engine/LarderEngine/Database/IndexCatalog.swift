import LarderLevelDB
import LarderPlatform
import LarderVocabulary

/// The indexes of a database. Their definitions are in POINTER, so that creating or dropping one is a change of the
/// whole database like any other, and a purge keeps them.
package struct IndexCatalog {
    let database: Database

    var indexing: DatabaseIndexes { database.indexing }
    private var context: EngineContext { database.context }

    /// Makes the indexes in use those of the applied and of the durable state: a checkpoint must write the hints of
    /// both, because either may be the state after a failure. Called with all shard locks held, after a state has
    /// changed.
    func follow() {
        if database.applied.indexes.isEmpty, database.durable.indexes.isEmpty, indexing.isUnused { return }
        // The files may have been opened, or replaced by files without hints.
        defer { context.indexLoop.wake() }
        let all = database.applied.indexes + database.durable.indexes.filter { !database.applied.indexes.contains($0) }
        guard let hasNew = indexing.follow(all) else { return }
        for shard in database.shards.all {
            if all.isEmpty {
                _ = shard.changedKeys?.take { _ in }
                shard.changedKeys = nil
            } else if let keys = shard.changedKeys {
                if hasNew { keys.addEverything(dirtyCount: shard.table.dirtyCount) }
            } else {
                shard.changedKeys = ChangedKeys(indexing.dirty.changed, dirtyCount: shard.table.dirtyCount)
            }
        }
    }

    /// Creates an index: see ``create(_:)``.
    package func create(named name: String, definition: [UInt8]) throws(LarderError) {
        try create([NewIndex(name, definition)])
    }

    /// Creates all indexes or none, and waits until they are on the disk. They are built in the background. Creates the
    /// database if it does not exist. Keeps an index of the same name with the same definition; replaces one with
    /// another definition. May block.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an invalid name, a definition that the larder's
    ///   ``IndexMaker`` refuses, and too many or too long definitions.
    package func create(_ new: [NewIndex]) throws(LarderError) {
        try ForkGuard.check("index")
        for index in new {
            guard IndexRules.isValid(name: index.name) else {
                throw refused("a name of an index has 1 to 64 letters, digits, '.', '_' and '-'")
            }
            if let extractor = index.extractor { declare(extractor, of: index.definition) }
            guard indexing.extractor(of: index.definition) != nil else {
                throw refused("the definition of the index is invalid")
            }
        }
        while true {
            if !database.isReady(forWriting: true) { try database.prepare(forWriting: true) }
            let isDone = try database.changeIfOpen("index") { (state) throws(LarderError) in
                var indexes = state.indexes
                for index in new
                where !indexes.contains(where: { $0.name == index.name && $0.definition == index.definition }) {
                    indexes.removeAll { $0.name == index.name }
                    indexes.append(
                        DatabaseIndex(
                            number: context.nextEpoch(after: 0), name: index.name, definition: index.definition))
                }
                if indexes == state.indexes { return }
                try setIndexes(indexes, state)
                guard let store = state.store else { return }
                for index in indexes where !state.indexes.contains(index) { try? finishIfEmpty(index, store) }
            }
            if isDone { return }
        }
    }

    private func declare(_ extractor: any IndexExtractor, of definition: [UInt8]) {
        database.shards.lockAll()
        defer { database.shards.unlockAll() }
        guard indexing.extractor(of: definition) == nil else { return }
        // Before a query can use the extractor, so that it finds the hints of all dirty entries. If a checkpoint has
        // written records without it, the index has no progress.
        for shard in database.shards.all { shard.changedKeys?.addEverything(dirtyCount: shard.table.dirtyCount) }
        indexing.declare(extractor, of: definition)
        context.indexLoop.wake()
    }

    /// Removes an index, and waits until that is on the disk. Its hints are deleted in the background. May block.
    /// - Returns: false if there is no such index.
    package func drop(named name: String) throws(LarderError) -> Bool {
        try ForkGuard.check("index")
        var wasThere = false
        while database.exists {
            if !database.isReady(forWriting: true) { try database.prepare(forWriting: true) }
            let isDone = try database.changeIfOpen("index") { (state) throws(LarderError) in
                wasThere = state.indexes.contains { $0.name == name }
                if wasThere { try setIndexes(state.indexes.filter { $0.name != name }, state) }
            }
            if isDone { break }
        }
        return wasThere
    }

    /// Called with `openLock` held.
    private func setIndexes(_ indexes: [DatabaseIndex], _ state: DatabaseState) throws(LarderError) {
        guard indexes.count <= IndexRules.countMax else {
            throw refused("a database can have \(IndexRules.countMax) indexes: drop one that is no longer needed")
        }
        var pointer = state.pointer
        pointer.indexes = indexes
        // A purge on a full disk needs a POINTER that fits into the reserved space.
        guard indexes.count < state.indexes.count || pointer.text.utf8.count <= Replacement.spareBytes else {
            throw refused("the definitions of the indexes are too long: use shorter ones, or fewer indexes")
        }
        try database.replacePointer("index") {
            $0.indexes = indexes
        } applying: {
            follow()
        }
        indexing.mayHaveDropped.store(true, ordering: .releasing)
        context.indexLoop.wake()
    }

    /// Makes a new index ready at once if LevelDB has no records yet.
    private func finishIfEmpty(_ index: DatabaseIndex, _ store: EpochStore) throws(LarderError) {
        guard store.isMade else { return }
        try store.indexLock.withLock { () throws(LarderError) in
            // Every checkpoint that begins after this knows the index.
            var isEmpty = true
            try store.access("index") { (leveldb) throws(LevelDBError) in
                try leveldb.scan([KeyKind.record]) { _ in
                    isEmpty = false
                    return false
                }
            }
            guard isEmpty else { return }
            let batch = LarderLevelDB.WriteBatch()
            batch.put(IndexProgress.key(index.number), IndexProgress.ready.value)
            try store.write(batch, sync: true, changesEntries: false)
            indexing.note(.ready, of: index.number, in: store)
        }
    }

    /// Makes all indexes be built anew in the background, because hints are missing.
    func buildAnew() throws(LarderError) {
        guard let store = database.appliedState.store, store.isMade else { return }
        try store.indexLock.withLock { () throws(LarderError) in
            let numbers = indexing.open.map(\.index.number)
            let batch = LarderLevelDB.WriteBatch()
            for number in numbers { batch.delete(IndexProgress.key(number)) }
            if batch.isEmpty { return }
            try store.write(batch, sync: true, changesEntries: false)
            for number in numbers { indexing.note(nil, of: number, in: store) }
        }
        indexing.mayHaveDropped.store(true, ordering: .releasing)
        context.indexLoop.wake()
    }

    private func refused(_ message: String) -> LarderError {
        LarderError(.invalidArgument, message, operation: "index", database: database.name)
    }

    /// Finds the hints of entries that were written since the last call. May block, but not on the disk.
    /// - Returns: the hints of each index that LevelDB may not have.
    @discardableResult
    func fillHints(for caller: DirtyHints.Caller = .query) -> [UInt64: [HintRun]] {
        indexing.dirty.fill(database.shards, for: caller, pinnedBytesMin: context.options.pinnedBytesMin) {
            indexing.open
        }
    }
}

extension Database {
    package var indexes: IndexCatalog { IndexCatalog(database: self) }

    /// Finds some hints if there are too many to be found, so that a query has to wait only for a few. Called before
    /// writes, without locks. Costs one atomic load if there are few.
    @inline(__always)
    func fillHintsBeforeWrite() {
        if indexing.dirty.needsWriters { indexes.fillHints(for: .writer) }
    }
}
