// The types that clients share with the engine, and the codecs that they share with the library, are part of their own
// interface.
@_exported import LarderVocabulary
@_exported import ModelCoding
