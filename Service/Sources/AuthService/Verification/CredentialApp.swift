public import AuthContract

extension Credential {
    /// The app that another service's request counts for: the one that it names, or, if it does not name exactly one, the
    /// credential's only app. Nil: there is no such app.
    ///
    /// The request may name an app that the credential is not for.
    public func app(claimedIn headers: HeaderFields) -> AppID? {
        if let claimed = try? Self.claimedApp(headers) { return claimed }
        return apps.count == 1 ? apps.first : nil
    }

    /// The app whose mode decides how a request that another service received is answered.
    ///
    /// Nothing in a request that names its app twice or wrongly says whose it is. Only a credential for one app does.
    func judgedApp(of headers: HeaderFields) throws(Refusal) -> AppID {
        guard let appID = app(claimedIn: headers) else { return try wellFormed { try Self.claimedApp(headers) } }
        guard role == .service, apps.contains(appID) else {
            throw Refusal(.forbidden, "credential \(id) is not for \(appID)")
        }
        return appID
    }

    private static func claimedApp(_ headers: HeaderFields) throws(ContractError) -> AppID {
        try AppID(headers.one(HeaderName.appID))
    }
}
