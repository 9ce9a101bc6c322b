// The vocabulary that users of Larder share with the engine, name by name: with the whole module would come what that has
// from the C library. What the client has too, such as EntryPolicy, CacheKey and EntryInfo,
// comes with the codecs.

@_exported import ModelCoding

@_exported import enum LarderEngine.Durability
@_exported import struct LarderEngine.LarderError
@_exported import class LarderEngine.ManualTimeSource
@_exported import struct LarderEngine.SystemTimeSource
@_exported import protocol LarderEngine.TimeSource
