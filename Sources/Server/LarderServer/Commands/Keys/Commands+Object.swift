import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Redis' commands about the memory use of entries, as far as they are meaningful for Larder.
extension CommandTable {
    static let objectPlanners: Planners = [
        .objectEncoding: ObjectCommands.encoding,
        .objectFreq: ObjectCommands.frequency,
        .objectIdletime: ObjectCommands.idleTime,
        .objectRefcount: ObjectCommands.referenceCount,
        .memoryUsage: ObjectCommands.usage,
    ]

    static let objectCommands: Handlers = [
        .memoryStats: ObjectCommands.stats,
        .memoryDoctor: ObjectCommands.doctor,
        .memoryPurge: ObjectCommands.purge,
        .memoryMallocStats: ObjectCommands.mallocStats,
    ]
}

/// OBJECT and MEMORY.
enum ObjectCommands {
    @Sendable static func encoding(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .read(2) { payload, replies in
            if let payload { replies.bulk(encoding(payload)) } else { replies.null() }
        }
    }

    @Sendable static func idleTime(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .facts(2, .counted) { facts, _, replies in
            guard let facts else { return replies.null() }
            replies.integer(max(0, words.now - facts.header.storedAt) / 1000)
        }
    }

    @Sendable static func referenceCount(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .read(2) { payload, replies in
            guard let payload else { return replies.null() }
            // Redis shares the objects of small integers, and reports this reference count for them.
            replies.integer(parseInteger(payload).map { (0..<10_000).contains($0) } ?? false ? Int(Int32.max) : 1)
        }
    }

    @Sendable static func frequency(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .facts(2, .counted) { (facts, _, replies) throws(CommandError) in
            guard facts == nil else {
                throw CommandError(
                    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when "
                        + "switching between policies at runtime LRU and LFU data will take some time to adjust.")
            }
            replies.null()
        }
    }

    private static func encoding(_ payload: UnsafeRawBufferPointer) -> String {
        if parseInteger(payload) != nil { return "int" }
        return payload.count <= 44 ? "embstr" : "raw"
    }

    // MARK: MEMORY

    @Sendable static func doctor(_ call: inout Call) throws(CommandError) -> Outcome {
        let engine = call.server.engine
        return .deferred { (reply) throws(CommandError) in
            // Read the memory use in the deferred work: `engine.memory` locks all shards (the parts of the memory). A
            // running transaction already holds some of these locks.
            let memory = engine.memory
            reply.verbatim(
                "Entries use \(memory.usedBytes) of \(memory.limitBytes) bytes of memory (--memory). Further entries are "
                    + "only on the disk.")
            return nil
        }
    }

    @Sendable static func purge(_ call: inout Call) throws(CommandError) -> Outcome {
        .deferred { (reply) throws(CommandError) in
            Allocator.giveBack()
            reply.simple("OK")
            return nil
        }
    }

    @Sendable static func mallocStats(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.replies.verbatim("Stats not supported for the current allocator")
        return .done
    }

    @Sendable static func usage(_ words: CallWords) throws(CommandError) -> EntryPlan {
        var index = 3
        while index < words.count {
            guard words.isWord(index, "SAMPLES"), index + 1 < words.count, try words.integer(index + 1) >= 0 else {
                throw .syntax
            }
            index += 2
        }
        return .facts(2, .uncounted) { facts, _, replies in
            guard let facts else { return replies.null() }
            let bytes = words.bytes(2).count + facts.header.byteCount + facts.payloadCount
            replies.integer(Limits.entryOverheadBytes + (bytes + 15) / 16 * 16)
        }
    }

    @Sendable static func stats(_ call: inout Call) throws(CommandError) -> Outcome {
        let server = call.server
        return .deferred { (reply) throws(CommandError) in
            stats(server, &reply)
            return nil
        }
    }

    private static func stats(_ server: ServerState, _ reply: inout ReplyBuffer) {
        let memory = server.engine.memory
        let fields: [(String, Int)] = [
            ("entries.bytes", memory.usedBytes), ("entries.limit", memory.limitBytes),
            ("clients", server.clients.read()), ("databases", server.engine.databases.count),
        ]
        reply.map(count: fields.count)
        for (name, value) in fields {
            reply.bulk(name)
            reply.integer(value)
        }
    }
}
