// The vocabulary that users of Larder share with the engine: UpdatePolicy, Durability, DeadlineRule, Codec, LarderError
// and the time sources. Everything else in LarderEngine has package access, so nothing more than these comes with it.

@_exported import LarderEngine
@_exported import ModelCoding
