public import Crypto

extension SHA256 {
    /// The hash of plain bytes. For a short message this costs half as much as hashing through `DataProtocol`.
    @_spi(Service) public static func hash(of bytes: UnsafeRawBufferPointer) -> SHA256Digest {
        var hash = SHA256()
        hash.update(bufferPointer: bytes)
        return hash.finalize()
    }
}
