internal import AuthServer

extension PageRequest {
    /// Whether a page of this very origin sent the form. The listener has checked that `Host` is one of `operations.hosts`.
    ///
    /// Browsers send `Origin` with every form. A proxy may end TLS, so an unencrypted connection allows both schemes; the authority
    /// is the one of the address bar in any case.
    var isFromOwnPage: Bool {
        if let fetchSite, fetchSite != "same-origin" { return false }
        guard let origin else { return fetchSite == "same-origin" }
        return origin.lowercased() == "https://\(host)".lowercased()
            || !isTLS && origin.lowercased() == "http://\(host)".lowercased()
    }

    /// Whether a page of another origin led here, or names this page as an image or a script. It is never read with the session: a site of
    /// the same domain sends the cookie.
    var isReadFromElsewhere: Bool {
        method != "POST" && fetchSite.map { $0 != "same-origin" && $0 != "none" } ?? false
    }
}
