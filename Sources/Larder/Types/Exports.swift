// Types of the engine that are also part of Larder's API. They are exported one by one, because exporting the whole
// engine would also export names of the C library. Types that LarderClient shares too, such as EntryPolicy, CacheKey
// and EntryInfo, are exported with LarderModelCoding.

@_exported import LarderModelCoding
@_exported import LarderModelQueries

@_exported import class LarderEngine.ClockTimeSource
@_exported import enum LarderEngine.Durability
@_exported import struct LarderEngine.LarderError
@_exported import class LarderEngine.ManualTimeSource
@_exported import struct LarderEngine.SystemTimeSource
@_exported import protocol LarderEngine.TimeSource
@_exported import struct LarderFetching.FetchError
@_exported import struct LarderFetching.FetchOptions
@_exported import struct LarderFetching.FetchSequence
@_exported import enum LarderFetching.FetchSource
@_exported import struct LarderObserving.CacheChange
@_exported import class LarderObserving.CacheChanges
@_exported import struct LarderObserving.ChangePosition
@_exported import struct LarderObserving.DecodedChange
@_exported import struct LarderObserving.DecodedChanges
@_exported import struct LarderObserving.PositionedChange
@_exported import struct LarderObserving.PositionedChanges
