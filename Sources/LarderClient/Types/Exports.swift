@_exported import LarderVocabulary
@_exported import ModelCoding

// The types that clients share with the engine, and the codecs that they share with the library, are part of their own
// interface.
@_exported import struct Fetching.FetchError
@_exported import struct Fetching.FetchOptions
@_exported import struct Fetching.FetchSequence
@_exported import enum Fetching.FetchSource
@_exported import struct Observing.CacheChange
@_exported import class Observing.CacheChanges
@_exported import struct Observing.ChangePosition
@_exported import struct Observing.DecodedChange
@_exported import struct Observing.DecodedChanges
@_exported import struct Observing.PositionedChange
@_exported import struct Observing.PositionedChanges
