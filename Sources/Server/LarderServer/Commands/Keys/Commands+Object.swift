import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Redis' commands about the memory use of entries, as far as they are meaningful for Larder.
extension CommandTable {
    static let objectPlanners: Planners = [
        .objectEncoding: { _ in
            .read(2) { payload, replies in
                if let payload { replies.bulk(encoding(payload)) } else { replies.null() }
            }
        },
        .objectFreq: frequency,
        .objectIdletime: idleTime,
        .objectRefcount: referenceCount,
        .memoryUsage: usage,
    ]

    static let objectCommands: Handlers = [
        .memoryStats: stats,
        .memoryDoctor: doctor,
        .memoryPurge: { _ in .okLater { () throws(CommandError) in Allocator.giveBack() } },
        .memoryMallocStats: { call in
            call.session.replies.verbatim("Stats not supported for the current allocator")
            return .done
        },
    ]

    @Sendable private static func idleTime(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .facts(2, .counted) { facts, _, replies in
            guard let facts else { return replies.null() }
            replies.integer(max(0, words.now - facts.header.storedAt) / 1000)
        }
    }

    @Sendable private static func referenceCount(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .read(2) { payload, replies in
            guard let payload else { return replies.null() }
            // Redis shares the objects of small integers, and reports this reference count for them.
            replies.integer(parseInteger(payload).map { (0..<10_000).contains($0) } ?? false ? Int(Int32.max) : 1)
        }
    }

    @Sendable private static func frequency(_ words: CallWords) throws(CommandError) -> EntryPlan {
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

    @Sendable private static func doctor(_ call: inout Call) throws(CommandError) -> Outcome {
        let engine = call.server.engine
        return .later { reply in
            // Read the memory use in the deferred work: `engine.memory` locks all shards (the parts of the memory). A
            // running transaction already holds some of these locks.
            let memory = engine.memory
            reply.verbatim(
                "Entries use \(memory.usedBytes) of \(memory.limitBytes) bytes of memory (--memory). Further entries are "
                    + "only on the disk.")
        }
    }

    @Sendable private static func usage(_ words: CallWords) throws(CommandError) -> EntryPlan {
        var options = OptionReader(words, from: 3)
        while let name = options.next() {
            guard name == "samples", try words.integer(options.value()) >= 0 else { throw .syntax }
        }
        return .facts(2, .uncounted) { facts, _, replies in
            guard let facts else { return replies.null() }
            let keyCount = words.bytes(2).count
            replies.integer(Engine.entryBytes(keyCount: keyCount, facts.header, payloadCount: facts.payloadCount))
        }
    }

    @Sendable private static func stats(_ call: inout Call) throws(CommandError) -> Outcome {
        let server = call.server
        return .later { reply in
            let memory = server.engine.memory
            reply.map(count: 4)
            reply.field("entries.bytes", memory.usedBytes)
            reply.field("entries.limit", memory.limitBytes)
            reply.field("clients", server.clients.read())
            reply.field("databases", server.engine.databases.count)
        }
    }
}
