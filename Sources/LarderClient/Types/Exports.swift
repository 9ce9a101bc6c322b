// The words that clients share with the engine, and the codecs that they share with the library, belong to their own
// vocabulary.
@_exported import LarderVocabulary
@_exported import ModelCoding
