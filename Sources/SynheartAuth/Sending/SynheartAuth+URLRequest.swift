public import AuthContract

#if canImport(FoundationNetworking)
    public import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension DeviceAuthenticating {
    /// Signs a request in place. Its body must be `httpBody`. A later change of method, URL or body breaks the signature, and so
    /// does a redirect.
    ///
    /// - Throws: `SIGNING_FAILED` unless the URL's origin is the auth service's or one of `Configuration.origins`.
    public func sign(
        _ request: inout URLRequest, appID: String, scheme: SignatureScheme? = nil, asserting: Bool = false
    ) async throws {
        guard request.httpBodyStream == nil, let url = request.url?.absoluteString else {
            throw SynheartAuthError(.signingFailed, "a request to sign has a URL and no body stream")
        }
        let signed = try await sign(
            appID: appID, scheme: scheme, method: request.httpMethod ?? "GET", url: url,
            bodyBytes: request.httpBody.map { Array($0) } ?? [], asserting: asserting)
        request.replaceSignature(signed)
    }

    /// Signs a request in place, under scheme 2. Its body is a file, as `URLSession.uploadTask(with:fromFile:)` sends it.
    /// The file is read in pieces for its digest, and must not change until it is sent.
    ///
    /// - Throws: `SIGNING_FAILED` if the URL's origin is neither the auth service's nor one of `Configuration.origins`,
    ///   if the device signs under scheme 1, or if the file cannot be read.
    public func sign(
        _ request: inout URLRequest, appID: String, bodyFile: String
    ) async throws {
        guard request.httpBodyStream == nil, request.httpBody == nil, let url = request.url?.absoluteString else {
            throw SynheartAuthError(.signingFailed, "a request to sign has a URL, and no body beside the file")
        }
        let signed = try await sign(
            appID: appID, method: request.httpMethod ?? "POST", url: url, bodyFile: bodyFile)
        request.replaceSignature(signed)
    }

    /// Signs a request, sends it and returns its answer, as `URLSession.data(for:)` does, and recovers as
    /// ``DeviceAuthenticating/send(_:appID:scheme:asserting:)`` does. Redirects are not followed: a 3xx is the answer.
    ///
    /// - Parameters:
    ///   - request: A request to the auth service or to one of `Configuration.origins`, its body in `httpBody`. The
    ///     whole call ends after its `timeoutInterval`, at most after one hour.
    ///   - appID: The app whose identity signs.
    ///   - scheme: nil for the scheme that the device signs with; any other is refused.
    ///   - asserting: Whether the request carries an App Attest assertion from the start.
    ///   - maximumAnswer: The most bytes of the answer's body.
    /// - Throws: As ``DeviceAuthenticating/send(_:appID:scheme:asserting:)``.
    public func data(
        for request: URLRequest, appID: String, scheme: SignatureScheme? = nil, asserting: Bool = false,
        maximumAnswer: Int = TransportRequest.usualMaximumAnswer
    ) async throws -> (Data, HTTPURLResponse) {
        guard request.httpBodyStream == nil, let url = request.url else {
            throw SynheartAuthError(.signingFailed, "a request to send has a URL and no body stream")
        }
        let headers = (request.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        let answer = try await send(
            TransportRequest(
                method: request.httpMethod ?? "GET", url: url.absoluteString, headers: HeaderFields(headers),
                body: request.httpBody.map { Array($0) } ?? [],
                deadline: .milliseconds(Int64(min(max(request.timeoutInterval, 0), 3600) * 1000)),
                maximumAnswer: maximumAnswer), appID: appID, scheme: scheme, asserting: asserting)
        let fields = Dictionary(answer.headers.lines.map { ($0.name, $0.value) }, uniquingKeysWith: { "\($0), \($1)" })
        guard
            let response = HTTPURLResponse(
                url: url, statusCode: answer.status, httpVersion: "HTTP/1.1", headerFields: fields)
        else { throw SynheartAuthError(.networkError, "the answer is no HTTP answer") }
        return (Data(answer.body), response)
    }
}

extension URLRequest {
    /// Removes the fields of an earlier signature of either scheme, except `Content-Digest`, and sets the fields of
    /// `signed`.
    fileprivate mutating func replaceSignature(_ signed: SignedHeaders) {
        for name in HostHeaders.signature { setValue(nil, forHTTPHeaderField: name) }
        for (name, value) in signed.fields { setValue(value, forHTTPHeaderField: name) }
    }
}
