internal import StrictJSON

extension AuthService {
    /// Records that a node starts with this version of the service. If another version is stored, an audit event names
    /// both versions.
    ///
    /// If the store has no version, this call stores it without an event. Such a store is new, or the last service that
    /// used it was of an older version, which stores no version and could not read the event's code. If several nodes of
    /// one version start at once, one of them appends the event.
    ///
    /// - Parameter version: the version of the service, such as `1.0.0`.
    /// - Throws: if the store fails. The service can run nevertheless: a later start records its version.
    public func recordStart(version: String) async throws(StoreError) {
        guard let versions else { return }
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            let stored = try await versions.serviceVersion()
            guard stored != version else { return }
            let event = stored.map { stored in
                AuditEvent(
                    .serviceVersionChanged, at: clock.now, actor: "service",
                    detail: JSONObject([("from", .string(stored)), ("to", .string(version))]))
            }
            if try await versions.replaceServiceVersion(stored, with: version, recording: event) { return }
        }
        throw ConcurrentChanges(of: "the service's version").storeError
    }
}
