internal import AuthServer

extension PageRequest {
    /// Whether a page of this origin sent the form. The listener has already checked that `Host` is one of
    /// `operations.hosts`.
    ///
    /// Browsers send `Origin` with every form. A proxy may terminate TLS, so both schemes are allowed if this connection
    /// is unencrypted. The host and port must always be those in the address bar.
    var isFromOwnPage: Bool {
        if let fetchSite, fetchSite != "same-origin" { return false }
        guard let origin else { return fetchSite == "same-origin" }
        return origin.lowercased() == "https://\(host)".lowercased()
            || !isTLS && origin.lowercased() == "http://\(host)".lowercased()
    }

    /// Whether a page of another origin linked here, or uses this page as an image or a script. Then the session is not
    /// used, because browsers send the cookie even if the request comes from a page of another host of the same domain.
    var isReadFromElsewhere: Bool {
        method != "POST" && fetchSite.map { $0 != "same-origin" && $0 != "none" } ?? false
    }
}
