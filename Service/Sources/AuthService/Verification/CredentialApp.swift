public import AuthContract

extension Credential {
    /// The app of another service's request. This is the app that the request names. If the request does not name exactly one,
    /// it is the credential's only app. Nil: there is no such app.
    ///
    /// The request may name an app that the credential is not for.
    public func app(claimedIn headers: HeaderFields) -> AppID? {
        if let claimed = try? Self.claimedApp(headers) { return claimed }
        return scope.named.count == 1 ? scope.named.first : nil
    }

    /// The app whose mode decides how a request that another service received is answered.
    ///
    /// A request that names its app twice or in a malformed way does not identify its app. Only a credential for one app does.
    func judgedApp(of headers: HeaderFields) throws(Refusal) -> AppID {
        guard let appID = app(claimedIn: headers) else { return try wellFormed { try Self.claimedApp(headers) } }
        guard role == .service, scope.covers(appID) else {
            throw Refusal(.forbidden, "credential \(id) is not for \(appID)")
        }
        return appID
    }

    private static func claimedApp(_ headers: HeaderFields) throws(ContractError) -> AppID {
        try AppID(headers.one(HeaderName.appID))
    }
}
