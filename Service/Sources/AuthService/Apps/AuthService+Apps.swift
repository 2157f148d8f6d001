public import AuthContract

extension AuthService {
    /// Removes an app with its recorded refusals and pending proofs. Credentials for only this app are revoked, and the other credentials
    /// no longer list the app. Returns false if the app has devices, does not exist, or its record is not `expected` (nil: any).
    public func removeApp(
        _ id: AppID, ifStill expected: AppRecord? = nil, actor: String
    ) async throws(StoreError) -> Bool {
        defer { credentials.forget() }
        return try await apps.remove(id, ifStill: expected, actor: actor)
    }
}
