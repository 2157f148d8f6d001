internal import StrictJSON

extension AuthService {
    /// The roots of Apple and Google that are trusted in addition to the built-in ones.
    public var roots: AddedRoots { apps.roots }

    /// Trusts these roots from now on, in place of the ones before, on every channel. The audit log names them first.
    ///
    /// Devices that attested under a root which is no longer among them stay registered.
    ///
    /// - Throws: if the event cannot be written. Then the roots stay as they were.
    public func trust(_ roots: AddedRoots) async throws(StoreError) {
        let removed = self.roots.added.filter { !roots.added.contains($0) }
        if !roots.added.isEmpty || !removed.isEmpty {
            // Not a code of its own: a node of the version before could not read it.
            try await verifier.audit.append(
                AuditEvent(
                    .securityEvent, at: clock.now, actor: "service",
                    detail: JSONObject([
                        ("event", .string(Self.rootsEvent)),
                        ("roots", .array(roots.added.map { .object($0.json) })),
                        ("removed", .array(removed.map { .object($0.json) })),
                    ])))
        }
        apps.trust(roots)
    }

    /// The event of a start or a reload with added roots, or with fewer of them than before.
    package static let rootsEvent = "added_roots"
}
