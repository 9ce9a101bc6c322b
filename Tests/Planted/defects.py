"""The defects that planted.py plants: each one to three lines, with the tests of its area.

`old` occurs exactly once in `file`, after all earlier defects of the list were planted. In `new`, PLANTED stands for the
check whether this defect is enabled. If the code changes, adapt the text here, or replace the defect by a similar one.
"""

from collections import namedtuple

Defect = namedtuple("Defect", "name file old new tests")

ENGINE = "Sources/Engine/LarderEngine/"
SERVER = "Sources/Server/LarderServer/"
ORIGINS = "Sources/Shared/LarderOriginClients/"
FETCHING = "Sources/Shared/LarderFetching/"
LIBRARY = "Sources/Larder/"
CLIENT = "Sources/LarderClient/"

ENTRIES = r"LarderServerTests\.EntryModelTests"
RECORDED = r"LarderEngineTests\.RecordedRunTests"
LIBRARY_MODEL = r"LarderTests\.ModelTests"

DEFECTS = [
    # Lives of entries
    Defect(
        "an entry is still stale when its grace is over", ENGINE + "Entry/Freshness.swift",
        "return now < end(header, deadline) ? .stale : .gone",
        "return (PLANTED ? now <= end(header, deadline) : now < end(header, deadline)) ? .stale : .gone",
        r"LarderEngineTests\.(FreshnessTests|GraceTests)",
    ),
    Defect(
        "an entry stored exactly at deadBefore is fresh again", ENGINE + "Entry/Freshness.swift",
        "if header.storedAt <= deadBefore { return min(deadBefore, header.storedAt) }",
        "if PLANTED ? header.storedAt < deadBefore : header.storedAt <= deadBefore { return min(deadBefore, header.storedAt) }",
        r"LarderEngineTests\.FreshnessTests",
    ),
    Defect(
        "a second change of the policy revives entries", ENGINE + "Entry/Freshness.swift",
        "deadBefore: max(deadBefore, now - interval))", "deadBefore: PLANTED ? now - interval : max(deadBefore, now - interval))",
        r"LarderEngineTests\.FreshnessTests",
    ),
    Defect(
        "COPY to another database revives or ends the copy", ENGINE + "Entry/Freshness.swift",
        "header.rule = .own(header.storedAt + interval)", "if !PLANTED { header.rule = .own(header.storedAt + interval) }",
        ENTRIES,
    ),
    Defect(
        "a refresh with KEEPTTL gives an entry only its remaining lifetime", ENGINE + "Operations/Update.swift",
        "return .own(now.addingClamped(max(1, deadline.subtractingClamped(header.storedAt))))",
        "return .own(now.addingClamped(max(1, deadline.subtractingClamped(PLANTED ? now : header.storedAt))))",
        ENTRIES,
    ),
    # Tags
    Defect(
        "a copied entry keeps the tag stamp of its source", ENGINE + "Operations/Update+Changes.swift",
        "if header == record.header, !header.hasTags { return put(index, record) }",
        "if header == record.header, PLANTED || !header.hasTags { return put(index, record) }", ENTRIES,
    ),
    Defect(
        "an entry released as UNCHANGED keeps its old tag stamp", ENGINE + "Operations/Update+Changes.swift",
        "header.storedAt = now\n        put(index, Record(header, tags: tags(of: record), payload: record.payload))",
        "header.storedAt = now\n        put(index, Record(header, tags: PLANTED ? record.tagsSection : tags(of: record), payload: record.payload))",
        ENTRIES,
    ),
    Defect(
        "an entry with two softly purged tags is stale since the later purge", ENGINE + "Entry/Tags.swift",
        "else if stamp < note.soft { end = min(end, note.softAt) }",
        "else if stamp < note.soft { end = PLANTED ? (end == .max ? note.softAt : max(end, note.softAt)) : min(end, note.softAt) }",
        ENTRIES,
    ),
    Defect(
        "a remembered absence survives a purge of tags", ENGINE + "Leases/LeaseTable.swift",
        "if case .absent = state.rest { dropNegativeResult(key) }", "if !PLANTED, case .absent = state.rest { dropNegativeResult(key) }",
        r"LarderServerTests\.FetchTagTests",
    ),
    # Leases
    Defect(
        "a lease granted just before a purge of its value's tags stays valid", ENGINE + "Leases/LeaseTable.swift",
        "guard lease.sequence < purgedAt else { return true }",
        "guard PLANTED ? lease.sequence + 1 < purgedAt : lease.sequence < purgedAt else { return true }",
        r"LarderServerTests\.FetchTagTests",
    ),
    Defect(
        "a stored value of 4 MiB does not end its key's lease", ENGINE + "Operations/Update+Applying.swift",
        "shard.put(large.take(operation.pointee.stored.header), hash, sequence: sequence, lease: lease)",
        "shard.put(large.take(operation.pointee.stored.header), hash, sequence: sequence, lease: PLANTED ? .none : lease)", ENTRIES,
    ),
    Defect(
        "waiters are not woken if a new lease ends earlier", ENGINE + "Leases/LeaseTable.swift",
        "for waiter in state.waiters.all where waiter.leaseEnds > ends { waiter.wakeUp() }",
        "for waiter in state.waiters.all where waiter.leaseEnds > ends && !PLANTED { waiter.wakeUp() }",
        r"LarderServerTests\.FetchModelTests",
    ),
    # Memory and LevelDB
    Defect(
        "an entry that expires before its checkpoint leaves the previous version in LevelDB", ENGINE + "Checkpoint/CheckpointPass.swift",
        "if !entry.isFoundExpired { database.context.statistics.expired.add() }\n            run.add(removal: entry, indexed: indexed)",
        "if !entry.isFoundExpired { database.context.statistics.expired.add() }\n            if !PLANTED { run.add(removal: entry, indexed: indexed) }",
        RECORDED,
    ),
    Defect(
        "after a failed checkpoint, LevelDB counts as having the index keys", ENGINE + "Memory/EntryTable+Dirty.swift",
        "item.indexed = 0\n            entry.isAbsentInLevelDB = false",
        "if !PLANTED { item.indexed = 0 }\n            entry.isAbsentInLevelDB = false",
        r"LarderEngineTests\.EntryTableTests",
    ),
    Defect(
        "a view lacks the entries that a running checkpoint has taken", ENGINE + "Memory/EntryTable+Dirty.swift",
        "        written.forEachItem { body(memory.entry($0.pointee.reference)) }",
        "        if !PLANTED { written.forEachItem { body(memory.entry($0.pointee.reference)) } }",
        r"LarderEngineTests\.CheckpointConcurrencyTests",
    ),
    Defect(
        "a cold read caches a value that was changed during the read", ENGINE + "Memory/Shard.swift",
        "if reads.end(number) { keep(key, hash, record) }", "if reads.end(number) || PLANTED { keep(key, hash, record) }",
        r"LarderEngineTests\.ShardTests",
    ),
    Defect(
        "a cold read caches a value that was purged during the read", ENGINE + "Memory/InFlightReads.swift",
        "wholeChanges += 1\n        for index in places.indices {", "wholeChanges += 1\n        for index in places.indices where !PLANTED {",
        r"LarderEngineTests\.ShardTests",
    ),
    Defect(
        "dirty bytes count towards the budget repeatedly", ENGINE + "Memory/Shard.swift",
        "publishedDirtyBytes = dirty\n", "if !PLANTED { publishedDirtyBytes = dirty }\n",
        r"LarderEngineTests\.MemoryBudgetTests/checkpointsFreeMemoryForWrites",
    ),
    Defect(
        "the sweep removes the index key of a record that has a newer state in memory", ENGINE + "Maintenance/Sweeper.swift",
        "guard let wasFound = database.dropFromMemory(key) else { return mayBeOwn ? .leave : .dropIndex }",
        "guard let wasFound = database.dropFromMemory(key) else { return mayBeOwn && !PLANTED ? .leave : .dropIndex }",
        r"LarderEngineTests\.SweepTests",
    ),
    Defect(
        "a policy that is not durable yet removes entries", ENGINE + "Entry/Freshness.swift",
        "return durable.map { $0.freshness(header, now: now) == .gone } ?? true",
        "return PLANTED || durable.map { $0.freshness(header, now: now) == .gone } ?? true",
        r"LarderEngineTests\.CheckpointTests/aFailedPolicyChangeAfterACheckpointExpiresNothing",
    ),
    Defect(
        "eviction removes writes that wait for an origin", ENGINE + "Eviction/EvictionPass.swift",
        "if isKept { continue }", "if isKept && !PLANTED { continue }",
        r"LarderEngineTests\.DiskBudgetTests",
    ),
    # The journal
    Defect(
        "operations of a purged epoch are replayed", ENGINE + "Recovery/JournalApplier.swift",
        "found.flatMap { $0.durable.counts(number) ? $0.shards.all : nil }",
        "found.flatMap { $0.durable.counts(number) || PLANTED ? $0.shards.all : nil }",
        RECORDED,
    ),
    Defect(
        "a bad frame before a good one is cut off as a torn tail", ENGINE + "Journal/JournalReplay.swift",
        "if later.frames > 0 || later.isIncomplete { return try damage(index, at: offset, reason) }",
        "if later.frames > (PLANTED ? 1 : 0) || later.isIncomplete { return try damage(index, at: offset, reason) }",
        r"LarderEngineTests\.JournalDamageTests",
    ),
    Defect(
        "a rollback sets the last sequence to the one before the failed group", ENGINE + "Journal/Journal+Rollback.swift",
        "lastSequence = sequenceBefore", "lastSequence = PLANTED ? batch.firstSequence - 1 : sequenceBefore",
        RECORDED,
    ),
    # Commands
    Defect(
        "KEEPTTL loses the grace", SERVER + "Command/SetOptions.swift",
        "keepsDeadline ? grace ?? previous?.header.grace : grace", "keepsDeadline && !PLANTED ? grace ?? previous?.header.grace : grace",
        ENTRIES,
    ),
    Defect(
        "KEEPTTL loses the tags", SERVER + "Command/SetOptions.swift",
        "keepsAny ? tags ?? previous?.tags : tags", "(PLANTED ? keepsTags : keepsAny) ? tags ?? previous?.tags : tags", ENTRIES,
    ),
    Defect(
        "EXPIRE GT ends what never expires", SERVER + "Command/EntryOperation.swift",
        "guard let current, new > current else { return false }", "guard PLANTED || current != nil, new > current ?? 0 else { return false }",
        ENTRIES,
    ),
    Defect(
        "COPY and MOVE do not replace an entry that has expired", SERVER + "Session/Call+Entries.swift",
        "update.current(0), replaces || !other.isFresh(0) else {",
        "update.current(0), replaces || (PLANTED ? !other.isStored(0) : !other.isFresh(0)) else {",
        ENTRIES,
    ),
    # Connections
    Defect(
        "of two deadlines of a tracked key, the later one is watched", SERVER + "Notifications/Tracking.swift",
        "part.deadlines.set(key, min(deadline, part.deadlines.deadline(key) ?? .max))",
        "part.deadlines.set(key, PLANTED ? deadline : min(deadline, part.deadlines.deadline(key) ?? .max))",
        r"LarderServerTests\.TrackingModelTests",
    ),
    Defect(
        "a client that wrote and read a key is not notified of the next change", SERVER + "Notifications/Tracking.swift",
        "let wasWritten = !part.writers.isEmpty && part.endWriting(key, client)",
        "let wasWritten = !PLANTED && !part.writers.isEmpty && part.endWriting(key, client)",
        r"LarderServerTests\.TrackingModelTests",
    ),
    Defect(
        "a reply about several keys does not wait for their commits", ENGINE + "Operations/Update+Loading.swift",
        "sequence = max(sequence, withDatabase { $0.undecided(entry, shard) })",
        "if !PLANTED { sequence = max(sequence, withDatabase { $0.undecided(entry, shard) }) }",
        r"LarderServerTests\.HeldReplyTests",
    ),
    Defect(
        "the last reply of a transaction is sent although its commit failed", SERVER + "Session/ReplyQueue.swift",
        "for region in regions { held.add(", "for region in PLANTED ? regions.dropLast() : regions[...] { held.add(",
        r"LarderServerTests\.TransactionIsolationTests",
    ),
    Defect(
        "an entry that expires while it is watched does not trip WATCH", ENGINE + "Operations/Transaction.swift",
        "return wasFresh ? isFresh && now == mark : now == mark || !isFresh",
        "return wasFresh ? (isFresh || PLANTED) && now == mark : now == mark || !isFresh",
        r"LarderServerTests\.TransactionCommandTests",
    ),
    Defect(
        "users with the right to write can change outbox databases", SERVER + "Rights/Rights.swift",
        "let level = level == .write && database.map(DatabaseName.isKept) ?? false ? .administer : level",
        "let level = !PLANTED && level == .write && database.map(DatabaseName.isKept) ?? false ? .administer : level",
        r"LarderServerTests\.RightsTests",
    ),
    Defect(
        "users with read-only rights can publish a database's events", SERVER + "Rights/Rights.swift",
        "let level: AccessLevel = row.flags.contains(.publishes) ? .write : .read",
        "let level: AccessLevel = row.flags.contains(.publishes) && !PLANTED ? .write : .read",
        r"LarderServerTests\.RightsTests",
    ),
    # Outboxes
    Defect(
        "after a restart, the next write gets the number of the last queued one", "Sources/Engine/LarderOutboxes/OutboxIndex.swift",
        "next = max(next, entry.number + 1)", "next = max(next, PLANTED ? entry.number : entry.number + 1)",
        r"Larder(Server|)Tests\.Outbox.*",
    ),
    Defect(
        "a write made during the delivery of an older one is not delivered", "Sources/Engine/LarderOutboxes/Outbox.swift",
        "guard number == settled[position].number else { return false }",
        "guard PLANTED || number == settled[position].number else { return false }", r"LarderServerTests\.Outbox(Model|)Tests",
    ),
    # Origins
    Defect(
        "a lifetime from the origin starts when the reply arrives", SERVER + "Origin/OriginTier.swift",
        "let left = reading.lifetimeMilliseconds.map { $0 - elapsed }",
        "let left = reading.lifetimeMilliseconds.map { PLANTED ? $0 : $0 - elapsed }", r"LarderServerTests\.OriginTests",
    ),
    Defect(
        "a reply whose key was invalidated meanwhile is cached", SERVER + "Origin/OriginTier.swift",
        "{ part.isCurrent(flight) }", "{ PLANTED || part.isCurrent(flight) }", r"LarderServerTests\.OriginTrackingTests",
    ),
    Defect(
        "a moved slot is trusted until the new map is known", ORIGINS + "Redis/RedisClient+Cluster.swift",
        "cluster.owners[redirection.slot]?.endEpochs(", "(PLANTED ? nil : cluster.owners[redirection.slot])?.endEpochs(",
        r"LarderOriginClientsTests\.ClusterTests",
    ),
    Defect(
        "in the library, a lifetime from the origin starts when the reply arrives", LIBRARY + "Origin/OriginFetch.swift",
        "let left = milliseconds - (database.leases.time - since)",
        "let left = PLANTED ? milliseconds : milliseconds - (database.leases.time - since)",
        r"LarderTests\.OriginReadingTests",
    ),
    Defect(
        "calls sent before the circuit breaker opened prolong its open time", LIBRARY + "Origin/OriginLimiter.swift",
        "guard !keepsLimits, isProbe || !breaker.isOpen else { return }", "guard !keepsLimits, PLANTED || isProbe || !breaker.isOpen else { return }",
        r"LarderTests\.OriginLimitsTests",
    ),
    Defect(
        "a value read during a write of its key is cached", LIBRARY + "Origin/InvalidationEpoch.swift",
        "since: ticket.sequence) && writes[key] == nil",
        "since: ticket.sequence) && (PLANTED || writes[key] == nil)", r"LarderTests\.InvalidationEpochTests",
    ),
    Defect(
        "a change reported while another one is being settled is lost", LIBRARY + "Origin/InvalidationEpoch.swift",
        "for (key, sequence) in noted where due[key] == sequence { due[key] = nil }",
        "for (key, sequence) in noted where PLANTED || due[key] == sequence { due[key] = nil }",
        r"LarderTests\.InvalidationEpochTests",
    ),
    # The library
    Defect(
        "an update overwrites another lifetime and other tags", LIBRARY + "Cache/EntryWrite.swift",
        "case .unchanged(let previous): update.current(index) == previous",
        "case .unchanged(let previous): PLANTED ? update.current(index)?.payload == previous?.payload : update.current(index) == previous", LIBRARY_MODEL,
    ),
    Defect(
        "a counter loses its grace", LIBRARY + "Cache/Cache+Updating.swift",
        "rule: previous?.header.rule ?? .governed, grace: previous?.header.grace,",
        "rule: previous?.header.rule ?? .governed, grace: PLANTED ? nil : previous?.header.grace,", LIBRARY_MODEL,
    ),
    Defect(
        "a caller that joins a lookup gets the value from before its call", FETCHING + "FlightTable.swift",
        "if entered.isFirst || !flight.isFromCache { return value }", "if PLANTED || entered.isFirst || !flight.isFromCache { return value }",
        r"LarderTests\.(FlightTests|FetchingTests)",
    ),
    Defect(
        "after a failure of the origin a value older than allowed is served", FETCHING + "FlightTable.swift",
        "guard let found, found.isYoung else { throw error }", "guard let found, PLANTED || found.isYoung else { throw error }",
        r"LarderTests\.(FlightTests|FetchingTests)",
    ),
    Defect(
        "a near cache keeps a value that was invalidated during the read", CLIENT + "NearCache/NearCache.swift",
        "guard tracker.isCurrent(", "guard PLANTED || tracker.isCurrent(",
        r"LarderClientTests\.NearCacheTests",
    ),
    Defect(
        "a near cache returns an entry at its deadline", CLIENT + "NearCache/NearTable.swift",
        "if heads[index].deadline != .max, now() >= heads[index].deadline {",
        "if heads[index].deadline != .max, PLANTED ? now() > heads[index].deadline : now() >= heads[index].deadline {",
        r"LarderClientTests\.NearCacheTests",
    ),
]
