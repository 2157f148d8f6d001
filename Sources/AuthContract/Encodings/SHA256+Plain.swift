public import Crypto

extension SHA256 {
    /// The hash of plain bytes. For short messages this takes half as long as hashing through `DataProtocol`.
    @_spi(Service) public static func hash(of bytes: UnsafeRawBufferPointer) -> SHA256Digest {
        var hash = SHA256()
        hash.update(bufferPointer: bytes)
        return hash.finalize()
    }
}
