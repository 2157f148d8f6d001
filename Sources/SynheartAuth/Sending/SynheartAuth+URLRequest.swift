public import AuthContract

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension SynheartAuth {
    /// Signs a request in place. Its body must be `httpBody`; whoever changes method, URL or body afterwards breaks the
    /// signature, and so does a redirect.
    ///
    /// - Throws: `SIGNING_FAILED` where the URL's origin is neither the auth service's nor one of `Configuration.origins`.
    public func sign(
        _ request: inout URLRequest, appId: String, scheme: SignatureScheme = .one
    ) async throws(SynheartAuthError) {
        guard request.httpBodyStream == nil, let url = request.url?.absoluteString else {
            throw SynheartAuthError(.signingFailed, "a request to sign has a URL and no body stream")
        }
        let signed = try await sign(
            appId: appId, scheme: scheme, method: request.httpMethod ?? "GET", url: url,
            bodyBytes: request.httpBody.map { Array($0) } ?? [])
        for (name, value) in signed.fields { request.setValue(value, forHTTPHeaderField: name) }
    }
}
