internal import StrictJSON

extension AuthService {
    /// The roots of Apple and Google that are trusted in addition to the built-in ones.
    public var roots: AddedRoots { apps.roots }

    /// Trusts these roots from now on, instead of the former ones, on every channel.
    ///
    /// A root that is not among them is no longer trusted, even if the audit log cannot be written. Devices that attested under
    /// it stay registered. New roots are trusted once the audit log has recorded them.
    ///
    /// - Throws: if the event cannot be written. Then no root is added. The next call's event names the removed ones.
    public func trust(_ roots: AddedRoots) async throws(StoreError) {
        let kept = self.roots.keeping(roots)
        let removed = kept.unrecorded
        apps.trust(kept)
        if !roots.added.isEmpty || !removed.isEmpty {
            // Do not use a separate event code: a node of the previous version could not read it.
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

    /// The name of the security event of a start or a reload with added roots, or with fewer of them than before.
    package static let rootsEvent = "added_roots"
}
