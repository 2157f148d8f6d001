public import AuthContract

extension AuthService {
    /// Removes an app with its credentials, recorded refusals and pending proofs. Returns false if the app has devices, does not
    /// exist, or its record is not `expected` (nil: any).
    public func removeApp(
        _ id: AppID, ifStill expected: AppRecord? = nil, actor: String
    ) async throws(StoreError) -> Bool {
        defer { credentials.forget() }
        return try await apps.remove(id, ifStill: expected, actor: actor)
    }
}
