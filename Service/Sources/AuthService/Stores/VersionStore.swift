/// Keeps the version of the service that started last.
///
/// Guarantees: the version changes together with its audit event, and only if it has not changed since the caller read it.
public protocol VersionStore: Sendable {
    /// The stored version, such as `1.0.0`; nil: none was stored yet.
    func serviceVersion() async throws(StoreError) -> String?

    /// Replaces the version. Returns false, changes nothing and appends no event if it is no longer `current`.
    ///
    /// - Parameters:
    ///   - current: the version that the caller read; nil: none was stored.
    ///   - version: the new version.
    ///   - event: appended in the same transaction; nil: no event.
    func replaceServiceVersion(
        _ current: String?, with version: String, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool
}

extension VersionStore {
    /// The name under which SQL stores keep the version.
    package static var fact: String { "service_version" }
}
