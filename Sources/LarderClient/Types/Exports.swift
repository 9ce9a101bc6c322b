@_exported import LarderModelCoding
@_exported import LarderModelQueries
@_exported import LarderVocabulary

// Types of other modules that are part of this module's public API.
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
