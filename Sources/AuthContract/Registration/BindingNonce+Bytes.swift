extension BindingNonce {
    /// A nonce from its 32 bytes.
    public init(bytes: [UInt8]) throws(ContractError) {
        guard bytes.count == 32 else { throw ContractError("a binding nonce has 32 bytes") }
        self.bytes = bytes
    }
}
