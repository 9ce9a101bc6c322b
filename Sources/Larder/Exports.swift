// The vocabulary that users of Larder share with the engine, name by name: with the whole module would come what that has
// from the C library. UpdatePolicy, EntryPolicy, CacheKey and Codec come with the codecs.

@_exported import ModelCoding

@_exported import enum LarderEngine.DeadlineRule
@_exported import enum LarderEngine.Durability
@_exported import struct LarderEngine.LarderError
@_exported import class LarderEngine.ManualTimeSource
@_exported import struct LarderEngine.SystemTimeSource
@_exported import protocol LarderEngine.TimeSource
