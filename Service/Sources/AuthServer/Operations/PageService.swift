package import AuthContract
package import AuthService
internal import StrictJSON

/// The part of the service that pages use: the admin API, under a person's credential, and the state of this process.
package struct PageService: Sendable {
    private let service: AuthService
    private let administration: AdminAPI
    private let readiness: Readiness
    private let certificates: @Sendable () -> [Certificate]

    /// A certificate of a listener.
    package struct Certificate: Sendable, Hashable {
        /// `public` or `operations`.
        package let listener: String
        package let notAfter: UnixTime
    }

    /// One check of `/readyz`.
    package struct Check: Sendable, Hashable {
        package let name: String
        /// The reason why the service cannot serve requests; nil: it can.
        package let failure: String?
        /// Why the service refuses some requests although it works; nil: it refuses none.
        package let degraded: String?
        /// When the degraded state ends; nil: an operator must act, or nothing is degraded.
        package let until: UnixTime?
    }

    init(
        service: AuthService, administration: AdminAPI, readiness: Readiness,
        certificates: @escaping @Sendable () -> [Certificate]
    ) {
        self.service = service
        self.administration = administration
        self.readiness = readiness
        self.certificates = certificates
    }

    /// The part of a service that pages use, without a server.
    package init(service: AuthService, stores: AuthService.Stores, readiness: Readiness) {
        self.init(
            service: service, administration: AdminAPI(service: service, stores: stores, metrics: ServerMetrics()),
            readiness: readiness,
            certificates: { [] })
    }

    /// The service's time.
    package var now: UnixTime { service.clock.now }

    /// The credential with this text; see `AuthService.signIn(_:from:)`.
    package func signIn(_ text: String, from address: ClientAddress) async throws(Refusal) -> Credential {
        try await service.signIn(text, from: address)
    }

    /// Records that a person signed out.
    package func signedOut(_ credential: Credential, sessions: Int) async throws(Refusal) {
        try await service.signedOut(credential, sessions: sessions)
    }

    /// A person's current credential; nil if it may no longer be used.
    package func credential(_ id: String) async throws(Refusal) -> Credential? {
        try await service.credentials.usable(id)
    }

    /// When this node last saw a credential; nil: not since the node started.
    package func lastUse(of credentialID: String) -> UnixTime? { administration.metrics?.credentialUses[credentialID] }

    /// Answers a call of the admin API as it would answer the bearer of the credential.
    package func answer(_ call: AdminCall, by credential: Credential) async -> AdminResponse {
        do {
            return AdminResponse(try await administration.answer(call, by: credential))
        } catch {
            let frame = ResponseFrame(requestID: RequestID.current ?? "page", now: now)
            let refusal = Refusal.answering(error)
            return AdminResponse(frame.answer(refusal), reason: refusal.reason)
        }
    }

    /// The checks of `/readyz`.
    package func checks() async -> [Check] {
        await readiness.findings().map {
            Check(
                name: $0.name, failure: $0.failure, degraded: $0.degraded?.reason, until: $0.degraded?.until)
        }
    }

    /// The certificates of the listeners; none without TLS.
    package func listenerCertificates() -> [Certificate] { certificates() }
}

extension ReloadableSettings.Certificates {
    /// The certificates by listener.
    var named: [PageService.Certificate] {
        [("public", server), ("operations", operations)].compactMap { listener, certificate in
            certificate.map { .init(listener: listener, notAfter: $0.validity.upperBound) }
        }
    }
}
