public import Crypto

extension SHA256 {
    /// The hash of plain bytes: the way over `DataProtocol` costs half as much as a short message's hash.
    @_spi(Service) public static func hash(of bytes: UnsafeRawBufferPointer) -> SHA256Digest {
        var hash = SHA256()
        hash.update(bufferPointer: bytes)
        return hash.finalize()
    }
}
