internal import StrictJSON

extension AuthService {
    /// The roots of Apple and Google that are trusted in addition to the built-in ones.
    public var roots: AddedRoots { apps.roots }

    /// Trusts these roots from now on, instead of the former ones, on every channel.
    ///
    /// A root that is not in `roots` is no longer trusted, even if the audit log cannot be written. Devices that attested
    /// under such a root stay registered. New roots are trusted once the audit log has recorded them.
    ///
    /// - Throws: if the audit event cannot be written. Then no root is added. The roots that this call removed are named in
    ///   the event of the next call.
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

    /// The name of the security event that a start or a reload writes if there are added roots, or if some were removed.
    package static let rootsEvent = "added_roots"
}
