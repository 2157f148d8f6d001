public import AuthContract

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension SynheartAuth {
    /// Signs a request in place. Its body must be `httpBody`. A later change of method, URL or body breaks the signature, and so
    /// does a redirect.
    ///
    /// - Throws: `SIGNING_FAILED` unless the URL's origin is the auth service's or one of `Configuration.origins`.
    public func sign(
        _ request: inout URLRequest, appId: String, scheme: SignatureScheme? = nil, asserting: Bool = false
    ) async throws(SynheartAuthError) {
        guard request.httpBodyStream == nil, let url = request.url?.absoluteString else {
            throw SynheartAuthError(.signingFailed, "a request to sign has a URL and no body stream")
        }
        let signed = try await sign(
            appId: appId, scheme: scheme, method: request.httpMethod ?? "GET", url: url,
            bodyBytes: request.httpBody.map { Array($0) } ?? [], asserting: asserting)
        for (name, value) in signed.fields { request.setValue(value, forHTTPHeaderField: name) }
    }

    /// Signs a request in place under scheme 2, whose body is a file, as `URLSession.uploadTask(with:fromFile:)` sends it. The file
    /// is read in pieces for its digest, and must not change until it is sent.
    ///
    /// - Throws: `SIGNING_FAILED` as above, and if the file cannot be read.
    public func sign(
        _ request: inout URLRequest, appId: String, bodyFile: String
    ) async throws(SynheartAuthError) {
        guard request.httpBodyStream == nil, request.httpBody == nil, let url = request.url?.absoluteString else {
            throw SynheartAuthError(.signingFailed, "a request to sign has a URL, and no body beside the file")
        }
        let signed = try await sign(
            appId: appId, scheme: .two, method: request.httpMethod ?? "POST", url: url, body: .file(bodyFile))
        for (name, value) in signed.fields { request.setValue(value, forHTTPHeaderField: name) }
    }
}
