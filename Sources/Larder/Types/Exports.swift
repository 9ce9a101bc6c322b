// The types that users of Larder share with the engine, one by one: the whole module would bring names of the C library
// too. Types that the client shares too, such as EntryPolicy, CacheKey and EntryInfo, come with the codecs.

@_exported import ModelCoding

@_exported import struct Fetching.FetchError
@_exported import struct Fetching.FetchOptions
@_exported import struct Fetching.FetchSequence
@_exported import enum Fetching.FetchSource
@_exported import enum LarderEngine.Durability
@_exported import struct LarderEngine.LarderError
@_exported import class LarderEngine.ManualTimeSource
@_exported import struct LarderEngine.SystemTimeSource
@_exported import protocol LarderEngine.TimeSource
@_exported import struct Observing.CacheChange
@_exported import class Observing.CacheChanges
@_exported import struct Observing.ChangePosition
@_exported import struct Observing.DecodedChange
@_exported import struct Observing.DecodedChanges
@_exported import struct Observing.PositionedChange
@_exported import struct Observing.PositionedChanges
